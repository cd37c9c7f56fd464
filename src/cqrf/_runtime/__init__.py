"""What every layer above stands on: compiling, random numbers, argument checks, threads, files."""
