// Which arm to play, as algorithms/hidden/kernels.py and maths/ridge.py have it: the same operations
// on floats in the same order.  models has the numbers of every model; all arms share one, or each
// has its own.

const dot = (x, y) => x.reduce((sum, a, i) => sum + a * y[i], 0);

const SMALLEST = 1e-200; // of variances, which are divided by
const LEAST = 1e-3; // share of the largest variance that rewards are taken to have
const CAUTION = 2; // standard deviations that a mean may be nearer to the middle than it seems
const PAYING = 0.1; // of the rounds that remain

const modelOf = (models, arm) => models[models.length > 1 ? arm : 0];

// x^T y and y^T y, where y = inverse x.
function forms(x, inverse) {
  const turned = inverse.map((row) => dot(row, x));
  return [dot(turned, x), dot(turned, turned)];
}

// The arm of highest <x, estimate> + radius sqrt(x^T y + gap y^T y) + bias sqrt(y^T y); of equals
// the first.
function mostOptimistic({ models }, rows) {
  let [arm, best] = [0, -Infinity];
  rows.forEach((x, a) => {
    const { estimate, inverse, radius, gap, bias, longest } = modelOf(models, a);
    const reach = (radius * Math.sqrt(1 + gap * longest * longest) + bias * longest) * longest;
    const mean = dot(x, estimate);
    if (mean + reach * Math.sqrt(dot(x, x)) < best) return;
    const [form, length] = forms(x, inverse);
    const index =
      mean + radius * Math.sqrt(Math.max(form, 0) + gap * length) + bias * Math.sqrt(length);
    if (index > best) [arm, best] = [a, index];
  });
  return arm;
}

// The arm of highest <x, theta>, for a theta of every model; of equals the first.
function bestFor(thetas, rows) {
  let [arm, best] = [0, -Infinity];
  rows.forEach((x, a) => {
    const index = dot(x, modelOf(thetas, a));
    if (index > best) [arm, best] = [a, index];
  });
  return arm;
}

// Thompson sampling: every theta from N(estimate, scatter^2 V^-1 + spread^2 V^-2).
function sampled({ models }, rows, { radius_scale: scale, subgaussian }, take) {
  const thetas = models.map(({ estimate, factor, inverse, spread }) => {
    const [sample, noise] = [[], []];
    for (const _ of estimate) {
      sample.push(scale * subgaussian * standardNormal(take));
      noise.push(scale * spread * standardNormal(take));
    }
    for (let i = sample.length - 1; i >= 0; i--) {
      for (let k = i + 1; k < sample.length; k++) sample[i] -= factor[k][i] * sample[k];
      sample[i] /= factor[i][i];
    }
    return sample.map((value, i) => value + (estimate[i] + dot(inverse[i], noise)));
  });
  return bestFor(thetas, rows);
}

// In units of subgaussian^2, the largest variance of rewards with about this mean; at most 1.
function largestShare(mean, deviation, { middle, half, subgaussian }) {
  const off = Math.max(Math.min(Math.abs(mean - middle), half) - CAUTION * deviation, 0);
  const variance = Math.max(half * half - off * off, LEAST * half * half);
  return Math.min(variance / (subgaussian * subgaussian), 1);
}

// IMED: the arm of least index; of equals the first.  While nothing is known, the best arm for a
// theta from N(0, I).
function leastDivergent({ models, rounds }, rows, facts, take) {
  if (models.every(({ estimate }) => estimate.every((value) => value === 0)))
    return bestFor(models.map(({ estimate }) => estimate.map(() => standardNormal(take))), rows);
  const { subgaussian, share, margin, horizon } = facts;
  const unit = subgaussian * subgaussian;
  const paying = Math.max(Math.min(rounds, PAYING * (horizon - rounds)), 1);
  const means = rows.map((x, a) => dot(x, modelOf(models, a).estimate));
  const highest = Math.max(...means);
  let [arm, least] = [0, Infinity];
  rows.forEach((x, a) => {
    const { inverse, radius, gap: noise, bias, longest } = modelOf(models, a);
    const scatter = radius * radius;
    const [floor, reach, mean] = [scatter / paying, longest * longest, means[a]];
    let lack = highest - mean;
    // The index falls with w^2 and with w^2 / q, which are at most this.
    let most = scatter * reach * dot(x, x);
    const known = Math.max(most * (1 + share * noise * reach / largestShare(mean, 0, facts)), floor);
    most = Math.max(most * (1 + share * noise * reach), SMALLEST);
    if (0.5 * lack * lack / most - Math.log(Math.max(known, SMALLEST)) > least) return;
    const [squares, length] = forms(x, inverse);
    const behind = lack > 0 ? margin : 0;
    if (lack > 0) lack += bias * Math.sqrt(length);
    const form = Math.max(squares, SMALLEST);
    const error = Math.sqrt(unit * form + Math.max(unit * noise, bias * bias) * length);
    const ratio = largestShare(mean, error, facts);
    const [own, far] = [Math.max(ratio * form, SMALLEST), noise * length];
    const squared = Math.max(scatter * (own / (1 + far / own) + share * far), SMALLEST);
    const index = 0.5 * lack * lack / squared - Math.log(Math.max(squared / ratio, floor)) + behind;
    if (index < least) [arm, least] = [a, index];
  });
  return arm;
}

const explorations = {
  Greedy: ({ models }, rows) => bestFor(models.map(({ estimate }) => estimate), rows),
  Optimism: mostOptimistic,
  Sampling: sampled,
  Divergence: leastDivergent,
};
