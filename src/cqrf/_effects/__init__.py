"""Treatment effects on censored times: from forests to effects, averages and rankings."""
