// Reports of generalised linear models, as algorithms/glm/gradients.py has them: the gradient of a
// person's log-loss, cut to the length `longest` and divided by it.

const links = {
  identity: (t) => t,
  logistic: (t) => (t > -700 ? 1 / (1 + Math.exp(-t)) : 0),
};

const cut = (value, low, high) => (Number.isNaN(value) ? 0 : Math.min(Math.max(value, low), high));

// At the server's estimate, from which everything but finite numbers within the bound is taken.
function gradientAt(estimate, x, outcome, facts) {
  const { link, reach, longest, parameter_bound: bound, grid } = facts;
  const residual = facts.residual ?? Infinity; // which JSON does not have
  const finite = estimate.map(checked);
  const length = Math.sqrt(dot(finite, finite));
  const point = length > bound ? finite.map((a) => a * (bound / length)) : finite;
  const mean = links[link](cut(dot(x, point), -reach, reach));
  const off = cut(mean - outcome, -residual, residual);
  const size = Math.abs(off) * Math.sqrt(dot(x, x)) * (1 + 1e-14);
  const shrunk = (off / Math.max(longest, size)) * (1 - 1e-14);
  return x.map((a) => (grid > 0 ? rounded((shrunk * a) / grid) * grid : shrunk * a));
}
