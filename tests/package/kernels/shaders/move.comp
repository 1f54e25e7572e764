#version 450
#include <item.glsl>
struct Particle {
  float position[3];
  float speed;
};
layout(set = 0, binding = 0) buffer Particles { Particle particles[]; };
void main() { if (item() < particles.length()) particles[item()].position[0] += particles[item()].speed; }
