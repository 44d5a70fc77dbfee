// What comes first in the search: Sphinx asks `Scorer.score` for each result. Pages to use come before pages to look up,
// and these before the history of the project; a page that answers what was typed comes first of all.
// `_ext/search_words.py` reads the table, too: its words are in the index, though the page may not have them.
const ANSWERS = {
  "start": "install, installation, pip, conda, quickstart, tutorial, gpu, cuda, tpu, toml, configuration file, result, save, store, resume, go on after a stop",
  "guides/choosing": "which algorithm, recommendation, recommended, choose an algorithm, best algorithm, select",
  "guides/robust": "outliers, corrupted rewards, corruption, contamination, attack, poisoning, robustness, forged rewards, replaced rewards, fake",
  "guides/heavy_tails": "heavy tailed, unbounded rewards, pareto, infinite variance, lognormal",
  "guides/federated": "federated learning, agents, multi agent, distributed bandit, byzantine",
  "guides/experts": "expert advice, experts, exp4, full information",
  "guides/auditing": "audit, membership inference, attack on privacy, empirical privacy, verify privacy, is my learner private",
  "guides/sharp_edges": "pitfalls, gotchas, mistakes, surprising, troubleshooting, wrong results",
  "privacy": "epsilon, eps, delta, privacy budget, budget, differential privacy, ldp, local differential privacy, ledger, accounting, composition",
  "own_data": "csv, tsv, excel, spreadsheet, dataframe, pandas, parquet, numpy, own data, my data, dataset, labels, classification, logged data, log, click log, off policy evaluation, ope, propensity",
  "agent": "agent, my own loop, own loop, ask tell, online, production, deploy, web, web handler, service, save learner, load learner, warm start, overlapping requests",
  "other_tools": "gymnasium, gym, mlflow, tensorboard, wandb, hydra, omegaconf, joblib, multiprocessing, pickle, submitit, slurm, callback",
  "extending": "own algorithm, new algorithm, custom algorithm, my algorithm, own environment, custom environment, plugin, protocol",
  "coming_from": "pymab, smpybandits, coba, obp, migrate, migration, open bandit pipeline",
  "comparison": "best arm identification, pure exploration, fixed confidence, fixed budget, other libraries, off policy evaluation, alternatives",
  "faq": "non stationary, nonstationary, changing world, best arm identification, gpu, memory, out of memory, seed, seeds, resume, question, help",
  "scaling": "resume, interrupted, checkpoint, continue, slurm, cluster, ray, hpc, job array, shard, several machines, memory, crash",
  "determinism": "reproducible, reproducibility, seed, random numbers, same results, bitwise, deterministic",
  "concepts": "glossary, terms, tune, tuning, hyperparameters, significance, how many seeds, stopping rule, confidence interval, p value, t test, common random numbers",
  "report": "latex, html, report, share results, dashboard, export, table for a paper",
  "performance": "gpu, speed, fast, slow, benchmark, runtime, numba",
  "reproductions": "paper figure, reproduce, replication, figures of the papers",
  "verdicts": "theorem, claim, proof, does the theorem hold",
  "catalogue": "list of algorithms, ucb, algorithms, exp3, linucb, thompson sampling, all algorithms",
  "which_plays_where": "which algorithm plays where, plays, compatible, does not fit, contexts have shape, decision set, row, fixed set",
  "cite": "citation, bibtex, cite, reference",
  "gallery/1_pictures/plot_first_sweep": "example, plot regret, regret curve, picture",
  "gallery/1_pictures/plot_paired_differences": "compare two algorithms, paired test, significance",
  "gallery/2_privacy/plot_price_of_privacy": "price of privacy, cost of privacy, privacy cost",
  "gallery/2_privacy/plot_contexts": "contextual bandit, contexts, context, linear bandit, linear contextual bandit, recommender, features",
  "gallery/2_privacy/plot_trust_models": "central, local, shuffle, trusted server, trust",
  "gallery/3_robustness/plot_changing_world": "non stationary, nonstationary, drift, piecewise stationary, changing arms, restless, switching",
  "gallery/3_robustness/plot_delay": "delayed feedback, delay, late rewards",
  "gallery/4_your_own/plot_own_algorithm": "own algorithm, custom algorithm",
  "gallery/4_your_own/plot_tuning": "tune, tuning, hyperparameter, grid search, learning rate",
  "gallery/5_machines/plot_resume": "resume, store, more seeds, continue",
  "notebooks/index": "colab, jupyter, notebook, ipynb",
  "notebooks/price_of_privacy": "price of privacy",
  "notebooks/scaling": "gpu, tpu, cluster"
};
// Points of a page by where it is, the first that fits: what it starts with, or what it is.
const PLACES = [
  [/^(start|own_data|agent|extending|coming_from|faq|privacy|scaling|concepts|guides\/.*)$/, 6],
  [/^(gallery|notebooks)\/|^(catalogue|which_plays_where|report|comparison|determinism)$/, 3],
  [/^(changelog|deviations|formulas|reproductions\/|verdicts|gallery\/index)/, -8],
  [/^api\/objects\//, -2]
];

var Scorer = {
  score: ([docname, title, anchor, descr, score, filename, kind]) => {
    const words = (text) => text.toLowerCase().split(/[^\p{Letter}\p{Number}]+/u).filter((word) => word);
    const typed = words(new URLSearchParams(window.location.search).get("q") || "");
    const said = (ANSWERS[docname] || "").split(", ").map(words);
    const place = PLACES.find(([pattern]) => pattern.test(docname));
    const whole = said.some((phrase) => phrase.join(" ") === typed.join(" "));
    const part = said.some((phrase) => phrase.length && phrase.every((word) => typed.includes(word)));
    const named = kind === "object" && docname.toLowerCase().endsWith("." + typed.join("_")); // typed as in code
    // a page once: its sections keep their own points
    return score + (place ? place[1] : 0) + (named ? 25 : kind !== "text" ? 0 : whole ? 30 : part ? 10 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2
};
