#version 460
// Attention of float32.
#include "attention.glsl"
