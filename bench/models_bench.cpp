// wye_models_bench MODEL_FOLDER TEXTS: the wye side of bench/peers/embeddings.py, which runs it in turns with onnxruntime.
//
// TEXTS is a JSON object with the arrays "documents" and "short". Commands come on standard input, a line each:
//     vectors PRECISION FILE   writes a JSON array of [text, vector] of all texts, by a model in that precision
//     documents                embeds the documents, one after the other
//     short                    embeds the short texts, one after the other
//     batch                    embeds the short texts in one call
//     queue                    embeds the short texts from as many threads, through an EmbedQueue
// Each answer is a line: the seconds that it took.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>
#include <wye/models/embed_queue.hpp>
#include <wye/models/encoder.hpp>
#include <wye/wye.hpp>

namespace {

using Texts = std::vector<std::string>;

[[noreturn]] void fail(const std::string& sentence) {
  std::fprintf(stderr, "wye_models_bench: %s\n", sentence.c_str());
  std::exit(1);
}
template <class T>
T valid(wye::Result<T> result) {
  if (!result) fail(result.error().describe());
  return *std::move(result);
}

void one_by_one(const wye::models::Encoder& encoder, const Texts& texts) {
  for (const std::string& text : texts) valid(encoder.embed(std::vector{text}));
}

void by_threads(wye::models::EmbedQueue& queue, const Texts& texts) {
  std::vector<std::thread> threads;
  for (const std::string& text : texts) threads.emplace_back([&] { valid(queue.embed(text)); });
  for (std::thread& thread : threads) thread.join();
}

void write_vectors(const wye::models::Encoder& encoder, const Texts& texts, const std::string& file) {
  nlohmann::json all = nlohmann::json::array();
  const auto vectors = valid(encoder.embed(texts));
  for (std::size_t t = 0; t < texts.size(); ++t)
    all.push_back({texts[t], std::vector<float>(vectors[t].begin(), vectors[t].end())});
  std::ofstream(file) << all.dump();
}

wye::models::Precision precision_of(const std::string& name) {
  using wye::models::Precision;
  for (const Precision one : {Precision::float32, Precision::float16, Precision::bfloat16, Precision::q8_0})
    if (wye::models::name(one) == name) return one;
  fail("Precision '" + name + "' is none of float32, float16, bfloat16 and q8_0.");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) fail("Usage: wye_models_bench MODEL_FOLDER TEXTS");
  const auto read = nlohmann::json::parse(std::ifstream(argv[2]), nullptr, false);
  if (read.is_discarded()) fail(std::string("File '") + argv[2] + "' is no JSON.");
  const Texts documents = read["documents"].get<Texts>(), brief = read["short"].get<Texts>();

  auto options = valid(wye::RuntimeOptions::from_environment());
  options.scheduler.measure_variants = false;
  const auto runtime = valid(wye::Runtime::open(options));
  const auto encoder = valid(wye::models::Encoder::open(runtime, argv[1]));
  auto queue = valid(wye::models::EmbedQueue::open(encoder));
  Texts all = documents;
  all.insert(all.end(), brief.begin(), brief.end());
  for (std::string command; std::cin >> command;) {
    const auto begin = std::chrono::steady_clock::now();
    if (std::string precision, file; command == "vectors" && std::cin >> precision >> file)
      write_vectors(
          valid(wye::models::Encoder::open(runtime, argv[1], {.precision = precision_of(precision)})), all,
          file);
    else if (command == "documents")
      one_by_one(encoder, documents);
    else if (command == "short")
      one_by_one(encoder, brief);
    else if (command == "batch")
      valid(encoder.embed(brief));
    else if (command == "queue")
      by_threads(queue, brief);
    else
      fail("Command '" + command + "' is none of vectors, documents, short, batch and queue.");
    std::printf("%.6f\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    std::fflush(stdout);
  }
}
