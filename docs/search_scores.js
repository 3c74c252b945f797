// How the search of the site orders its results: pages of modules come last. The numbers are the defaults of Sphinx.
var Scorer = {
  score: ([page, title, anchor, description, score]) => (page.startsWith("modules/") ? score - 100 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
