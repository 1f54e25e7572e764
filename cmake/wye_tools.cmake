# The tools: programs that see the public headers only.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/wyec/*.cpp)
add_executable(wyec ${sources})
add_executable(wye::wyec ALIAS wyec)
wye_options(wyec)
target_link_libraries(wyec PRIVATE wye::wye)
