// Worker process in C++: the commands of worker.py, for grf's C++ core without R.
// Run by process.py: grf_driver HONEST FRACTION MIN_NODE_SIZE   (built by grf_core.py)

#include <chrono>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "commons/Data.h"
#include "forest/ForestPredictors.h"
#include "forest/ForestTrainers.h"

using Doubles = std::vector<double>;

const Doubles LEVELS{0.1, 0.5, 0.9};

struct Settings {
  bool honest;
  double fraction;
  unsigned min_node_size;
};

struct State {
  size_t n, p, n_queries;
  unsigned threads;
  Doubles train, queries;
  std::unique_ptr<grf::Forest> forest;
};

Doubles read_doubles(const std::string& path, size_t count) {
  Doubles values(count);
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(values.data()), count * sizeof(double))) {
    throw std::runtime_error("cannot read " + path);
  }
  return values;
}

grf::Data train_data(const State& state) {
  grf::Data data(state.train, state.n, state.p + 1);
  data.set_outcome_index(state.p);
  return data;
}

void load(State& state, std::istream& words) {
  std::string folder;
  std::getline(words, folder, '\t');
  words >> state.n >> state.p >> state.n_queries;
  state.train = read_doubles(folder + "/train.bin", state.n * (state.p + 1));
  state.queries = read_doubles(folder + "/queries.bin", state.n_queries * state.p);
}

void fit(State& state, const Settings& settings, std::istream& words) {
  unsigned trees;
  words >> trees >> state.threads;
  const unsigned all_features = 4 * state.p + 100;  // the mean of a Poisson draw, cut at p
  const grf::ForestOptions options(
      trees, 1, settings.fraction, all_features, settings.min_node_size, settings.honest, 0.5,
      true, 0.05, 0.0, state.threads, 1, {}, 0);
  state.forest.reset();
  state.forest.reset(
      new grf::Forest(grf::quantile_trainer(LEVELS).train(train_data(state), options)));
}

void predict(const State& state) {
  const grf::Data queries(state.queries, state.n_queries, state.p);
  const auto predicted = grf::quantile_predictor(state.threads, LEVELS)
                             .predict(*state.forest, train_data(state), queries, false);
  if (predicted.size() != state.n_queries) throw std::runtime_error("predictions are missing");
}

void obey(const std::string& line, State& state, const Settings& settings) {
  std::istringstream words(line);
  std::string name;
  std::getline(words, name, '\t');
  if (name == "load") {
    load(state, words);
  } else if (name == "fit") {
    fit(state, settings, words);
  } else if (name == "predict") {
    predict(state);
  } else {
    throw std::runtime_error("the driver cannot " + name);
  }
}

int main(int, char** arguments) {
  const Settings settings{std::string(arguments[1]) == "1", std::stod(arguments[2]),
                          static_cast<unsigned>(std::stoul(arguments[3]))};
  State state{};
  for (std::string line; std::getline(std::cin, line);) {
    const auto began = std::chrono::steady_clock::now();
    try {
      obey(line, state, settings);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - began;
      std::cout << "ok " << taken.count() << std::endl;
    } catch (const std::exception& problem) {
      std::cout << "error " << problem.what() << std::endl;
    }
  }
}
