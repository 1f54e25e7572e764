# wye_bench: every benchmark and its peers in one program, so that they can be timed in turns.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.cpp ${PROJECT_SOURCE_DIR}/bench/*/*.cpp)
if(sources)
  find_package(benchmark CONFIG REQUIRED)
  add_executable(wye_bench ${sources})
  set_target_properties(wye_bench PROPERTIES UNITY_BUILD OFF)  # each file has its own peers and helpers
  wye_options(wye_bench)
  target_include_directories(wye_bench PRIVATE ${PROJECT_SOURCE_DIR}/bench)
  target_link_libraries(wye_bench PRIVATE wye::wye wye::workloads benchmark::benchmark)
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/bench/main.cpp)
    target_link_libraries(wye_bench PRIVATE benchmark::benchmark_main)
  endif()
  # The peer in hand-written Vulkan compiles its own shader.
  if(WYE_VULKAN AND WYE_GLSL)
    target_link_libraries(wye_bench PRIVATE wye_deps::vulkan_headers wye_deps::shaderc ${CMAKE_DL_LIBS})
  else()
    set_source_files_properties(${PROJECT_SOURCE_DIR}/bench/device_bench.cpp
      ${PROJECT_SOURCE_DIR}/bench/peers/raw_vulkan.cpp PROPERTIES HEADER_FILE_ONLY ON)
  endif()
  # The peer on the bare driver needs the driver's header, and nothing to link.
  if(WYE_CUDA)
    target_link_libraries(wye_bench PRIVATE wye_deps::cuda_headers ${CMAKE_DL_LIBS})
  else()
    set_source_files_properties(${PROJECT_SOURCE_DIR}/bench/cuda_bench.cpp ${PROJECT_SOURCE_DIR}/bench/peers/raw_cuda.cpp
      PROPERTIES HEADER_FILE_ONLY ON)
  endif()
endif()
