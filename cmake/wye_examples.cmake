# One program for each examples/NN_name.cpp, and the main job, examples/document_network. Each is also a test.
function(wye_example name)
  add_executable(wye_example_${name} ${ARGN})
  set_target_properties(wye_example_${name} PROPERTIES OUTPUT_NAME ${name})
  wye_options(wye_example_${name})
  target_link_libraries(wye_example_${name} PRIVATE wye::wye wye::workloads)
  if(WYE_NOEXCEPT)
    target_compile_options(wye_example_${name} PRIVATE -fno-exceptions -fno-rtti)
  endif()
endfunction()

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/[0-9][0-9]_*.cpp)
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  wye_example(${name} ${source})
  add_test(NAME example_${name} COMMAND wye_example_${name})
  list(APPEND tests example_${name})
endforeach()

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/document_network/*.cpp)
if(sources)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(wye_cairo REQUIRED IMPORTED_TARGET cairo)
  wye_example(document_network ${sources})
  target_link_libraries(wye_example_document_network PRIVATE PkgConfig::wye_cairo)
  add_test(NAME example_document_network
    COMMAND wye_example_document_network --out ${PROJECT_BINARY_DIR}/document_network_report)
  list(APPEND tests example_document_network)
endif()
if(WYE_SANITIZE MATCHES address)
  # lavapipe 22.3 leaks 128 bytes, and once it is unloaded no suppression can name it. The test programs keep it loaded
  # and do look for leaks.
  set_tests_properties(${tests} PROPERTIES ENVIRONMENT ASAN_OPTIONS=detect_leaks=0)
endif()
