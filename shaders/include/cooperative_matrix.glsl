// Cooperative matrices in the device's sizes.
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#pragma use_vulkan_memory_model

// `Limits::cooperative_matrix`: each 8 or 16.
layout(constant_id = 2000) const uint matrix_rows = 16;
layout(constant_id = 2001) const uint matrix_columns = 16;
layout(constant_id = 2002) const uint matrix_inner = 16;
