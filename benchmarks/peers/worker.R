# Worker process in R: the commands of worker.py, for ranger and grf.
# Run by process.py: Rscript worker.R PACKAGE

package <- commandArgs(trailingOnly = TRUE)[1]
suppressPackageStartupMessages(library(package, character.only = TRUE))
levels <- c(0.1, 0.5, 0.9)

read_doubles <- function(folder, file, n, columns) {
  values <- readBin(file.path(folder, file), "double", n * columns)
  matrix(values, n, dimnames = list(NULL, paste0("x", seq_len(columns))))
}

fit_forest <- list(
  ranger = function(X, time, trees, threads) {
    ranger(
      x = X, y = time, num.trees = trees, mtry = ncol(X), min.node.size = 39, replace = FALSE,
      sample.fraction = 0.632, quantreg = TRUE, oob.error = FALSE, num.threads = threads,
      verbose = FALSE, seed = 1
    )
  },
  grf = function(X, time, trees, threads) {
    quantile_forest(
      X, time, quantiles = levels, num.trees = trees, mtry = 4 * ncol(X) + 100,
      min.node.size = 20, sample.fraction = 0.5, num.threads = threads, seed = 1
    )
  }
)[[package]]

predict_forest <- list(
  ranger = function(forest, X, threads) {
    predict(forest, X, type = "quantiles", quantiles = levels, num.threads = threads)
  },
  grf = function(forest, X, threads) {
    predict(forest, X, quantiles = levels, num.threads = threads)
  }
)[[package]]

commands <- list(
  load = function(folder, n, p, n_queries) {
    n <- as.integer(n)
    p <- as.integer(p)
    table <- read_doubles(folder, "train.bin", n, p + 1)
    X <<- table[, seq_len(p)]
    observed <<- table[, p + 1]
    queries <<- read_doubles(folder, "queries.bin", as.integer(n_queries), p)
    rm(table)
    gc()
  },
  fit = function(trees, n_threads) {
    threads <<- as.integer(n_threads)
    forest <<- fit_forest(X, observed, as.integer(trees), threads)
  },
  predict = function() predict_forest(forest, queries, threads),
  save = function(path) saveRDS(forest, path)
)

input <- file("stdin", open = "r")
while (length(line <- readLines(input, 1)) > 0) {
  words <- strsplit(line, "\t")[[1]]
  began <- Sys.time()
  problem <- tryCatch({
    do.call(commands[[words[1]]], as.list(words[-1]))
    NULL
  }, error = conditionMessage)
  seconds <- as.numeric(difftime(Sys.time(), began, units = "secs"))
  answer <- if (is.null(problem)) sprintf("ok %.6f", seconds) else paste("error", problem)
  cat(gsub("\n", " ", answer), "\n", sep = "")
  flush(stdout())
}
