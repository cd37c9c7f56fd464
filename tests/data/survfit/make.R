# Survival tables of R's survival package, of the rows of its data set pbc by stage of the disease.
# Run in this folder: Rscript make.R
library(survival)

known <- pbc[!is.na(pbc$stage), ]
rows <- data.frame(
  stage = known$stage,
  time = known$time,
  event = as.integer(known$status == 2),
  weight = 1 + seq_len(nrow(known)) %% 3,
  entry = (seq_len(nrow(known)) * 37) %% pmin(known$time, 900)
)
rows <- rbind(rows, data.frame(  # the last row is an event: the curve falls to 0
  stage = 5, time = c(100, 200, 200, 300, 400), event = c(1, 0, 1, 0, 1), weight = 1, entry = 0
))
write.csv(rows, "rows.csv", row.names = FALSE)

times <- c(0, 50, 191, 200, 365, 400, 1000, 2000, 3000, 4000, 4191, 4192, 4400, 4500, 4556, 4795,
           4796, 36500)
survived <- 730

# summary() leaves out the times beyond the last one of a curve: they are NA here.
at <- function(curve, times) {
  found <- summary(curve, times = times, extend = FALSE)
  found$surv[match(times, found$time)]
}

tables <- list()
for (stage in 1:5) {
  mine <- rows[rows$stage == stage, ]
  responses <- list(
    plain = Surv(mine$time, mine$event),
    entry = Surv(mine$entry, mine$time, mine$event)
  )
  for (kind in names(responses)) {
    curve <- survfit(responses[[kind]] ~ 1, weights = mine$weight)
    table <- data.frame(
      stage = stage, kind = kind, time = times, survival = at(curve, times), given = NA,
      last = max(mine$time),
      # The mean restricted to the last time.
      mean = summary(curve, rmean = max(mine$time))$table[["rmean"]]
    )
    if (kind == "plain" && max(mine$time) > survived) {
      later <- survfit(responses[[kind]] ~ 1, weights = mine$weight, start.time = survived)
      table$given <- at(later, survived + times)
    }
    tables[[length(tables) + 1]] <- table
  }
}
options(digits = 15)
write.csv(do.call(rbind, tables), "tables.csv", row.names = FALSE)
