# wye_embed_shaders(<target>): gives a target the text of every kernel in shaders/<workload>/ as a header
# <workload>_kernels.hpp, with one `std::string_view wye::workloads::kernels::<stem>_<extension>` for each file.
# Not by wyec, as wye_add_kernels does it for others: the text alone is wanted, and a wye for another machine, or one without
# a GLSL compiler, would first have to be built for this one to have a wyec.
function(wye_embed_shaders target)
  file(GLOB shared CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/shaders/include/*)
  file(GLOB folders LIST_DIRECTORIES ON CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/shaders/*)
  set(output_folder ${PROJECT_BINARY_DIR}/shaders)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_shaders.cmake)
  foreach(folder IN LISTS folders)
    cmake_path(GET folder FILENAME workload)
    file(GLOB kernels CONFIGURE_DEPENDS ${folder}/*.comp)
    if(workload STREQUAL include OR NOT kernels)
      continue()
    endif()
    set(output ${output_folder}/${workload}_kernels.hpp)
    add_custom_command(
      OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} -D output=${output} -D include=${PROJECT_SOURCE_DIR}/shaders/include
        -P ${script} -- ${kernels}
      DEPENDS ${kernels} ${shared} ${script}
      COMMENT "Embedding the kernels of ${workload}"
      VERBATIM)
    target_sources(${target} PRIVATE ${output})
  endforeach()
  target_include_directories(${target} PRIVATE ${output_folder})
endfunction()
