#pragma once
/// The network that pictures are timed with: 1,000 nodes, 3,000 links, in 1280 x 720 pixels.
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace wye_bench {

struct NetworkScene {
  static constexpr std::uint32_t nodes = 1000, links = 3000, width = 1280, height = 720;
  static constexpr float scale = 11;  ///< pixels per unit
  std::vector<std::uint32_t> ends;    ///< two nodes for each link
  std::vector<float> positions;       ///< x and y of each node
  std::vector<float> ranks;
};

inline NetworkScene network_scene() {
  NetworkScene scene;
  std::mt19937 random(11);
  for (std::uint32_t i = 0; i < 2 * NetworkScene::links; ++i)
    scene.ends.push_back(static_cast<std::uint32_t>(random() % NetworkScene::nodes));
  for (std::uint32_t i = 0; i < NetworkScene::nodes; ++i) {
    const double angle = 2.399963229728653 * i, radius = std::sqrt(i + 0.5);
    scene.positions.push_back(static_cast<float>(radius * std::cos(angle)));
    scene.positions.push_back(static_cast<float>(radius * std::sin(angle)));
    scene.ranks.push_back(static_cast<float>(random() >> 8) * 0x1p-24f);
  }
  return scene;
}

}  // namespace wye_bench
