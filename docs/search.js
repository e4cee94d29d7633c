// The order of search results: guides before pages about the project, names of today before those of TensorFlow 1.
// The weights are Sphinx's own.
var Scorer = {
  score: ([page, title, , , score]) =>
    score -
    (/^(changelog|contributing|releasing|security|design|add_an_op|coverage|ecosystem|xla_rows|benchmarks)$/.test(page) ? 6 : 0) -
    (page === "introduction" ? 3 : 0) +
    (/^(quick_start|gradients|derivatives|graph_mode|training|notebooks|devices|from_tensorflow|questions)$/.test(page) ? 1 : 0) -
    (title.startsWith("tf.compat.") ? 12 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
