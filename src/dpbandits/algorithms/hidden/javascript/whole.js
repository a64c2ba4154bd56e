/* What a person's device runs, in JavaScript: it chooses for its person, and reports.
 *
 *   const device = new dpbandits.Device(config);   // server.device().to_json() in Python
 *   device.use(chooser);                           // whenever the server has published a newer one
 *   const arm = device.choose(contexts);           // a row of features for every arm
 *   send(device.report(reward));                   // as JSON; report() where no reward came
 *
 * Under local trust a report is a list of numbers for the server, in the shuffle model it is
 * messages for the shuffler: config says which.  dpbandits.connect does the sending, too.  Features,
 * arm and reward stay here, and are forgotten with the report.  A device always sends, at a time
 * that does not depend on the reward, and sends report() where there is nothing to tell: silence
 * would tell.
 *
 * Arms are those of the Python package, and so are reports, where both are given the same random
 * bytes: both do the same operations on 64-bit floats, and on integers, in the same order.  ES2020,
 * for browsers, Node 20 and workers; nothing else is needed.
 */
"use strict";

const dpbandits = (() => {
// PARTS
return {
  Device, RewardDevice, connect, encode, seal, open, discreteLaplace, discreteGaussian, hemisphere,
  standardNormal, rootOf,
};
})();

if (typeof module === "object") module.exports = dpbandits;
