#pragma once
// A point of a timeline.
struct Placed {
  float position;
  float importance;
  float relevance;
  unsigned category;
};
