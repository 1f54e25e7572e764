#include "base/version.hpp"

#include "base/text.hpp"

namespace wye::inline v0 {

Version library_version() noexcept { return header_version; }

std::string to_string(Version version) {
  return base::text("{}.{}.{}", version.major, version.minor, version.patch);
}

namespace base {

Result<void> check_headers(Headers headers, std::size_t options) {
  const Version header = headers.version, library = library_version();
  if (header.major != library.major || header.minor != library.minor)
    return Error(
        Errc::unsupported,
        text("This program was compiled with the headers of wye {}, but the loaded library is wye {}; "
             "major and minor version must be equal.",
             to_string(header), to_string(library)));
  if (headers.options != options)
    return Error(
        Errc::unsupported,
        text("This program was compiled with other layouts of the standard library's types than wye: its "
             "options have {} bytes, those of the library {}. Macros such as _GLIBCXX_DEBUG change layouts; "
             "set them for both or for neither.",
             headers.options, options));
  return {};
}

}  // namespace base
}  // namespace wye
