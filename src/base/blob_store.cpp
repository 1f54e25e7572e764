#include <wye/base/blob_store.hpp>

namespace wye {
inline namespace v0 {

BlobStore::~BlobStore() = default;

}  // namespace v0
}  // namespace wye
