// Rewards of arms that the server chooses: only they are the person's own.

const draws = { Laplace: discreteLaplace, Gaussian: discreteGaussian };

class RewardDevice {
  /* config: the text that a service gives for an experiment of arms under local trust; all of the
   * guarantee rests on it.  take: as of Device. */
  constructor(config, take = systemBytes) {
    const { randomiser, reports } = JSON.parse(config);
    if (!(randomiser.noise in draws))
      throw new Error(`a device in JavaScript draws no noise of ${randomiser.noise}`);
    Object.assign(this, { _told: randomiser, _take: take });
    this.left = reports;
    this.decision = null; // the id of the choice that waits for its report
  }

  get waits() {
    return this.decision !== null;
  }

  /* The reward with noise, for the server; the default reward if none came, or no report is left. */
  report(reward) {
    if (this.left <= 0) reward = undefined;
    else this.left -= 1;
    this.decision = null;
    const { noise, reward_range: range, default_reward: nothing, grid, parameter } = this._told;
    const units = rounded(within(range, nothing, reward) / grid);
    const near = Math.min(Math.max(units, Math.ceil(range[0] / grid)), Math.floor(range[1] / grid));
    const [p, q] = parameter.map(BigInt);
    return Number(BigInt(near) + draws[noise](p, q, atOnce(this._take))) * grid;
  }
}
