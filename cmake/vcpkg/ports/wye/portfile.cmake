# An overlay port: it builds the source tree it lies in.
# vcpkg hashes the port's own files, not this tree: install with --editable after a change.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS feature_options
  FEATURES
    cuda      WYE_CUDA
    glsl      WYE_GLSL
    models    WYE_MODELS
    records   WYE_RECORDS
    tools     WYE_TOOLS
    vulkan    WYE_VULKAN
    workloads WYE_WORKLOADS
)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${feature_options}
    -DWYE_BENCHMARKS=OFF
    -DWYE_EXAMPLES=OFF
    -DWYE_INSTALL=ON
    -DWYE_TESTS=OFF
)
vcpkg_cmake_install()
vcpkg_copy_pdbs()
vcpkg_cmake_config_fixup(PACKAGE_NAME wye CONFIG_PATH lib/cmake/wye)
vcpkg_fixup_pkgconfig()
if("tools" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES wye wyec AUTO_CLEAN)
endif()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
