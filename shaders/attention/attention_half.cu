// Attention of half, with tensor cores if the architecture has ldmatrix.
#include "attention.cuh"
#include "numbers.cuh"
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 750
#include "attention_plain.cuh"
#else
#include "attention_tensor.cuh"
#endif

extern "C" __global__ void __launch_bounds__(128, 4)
    wye_attention_half(wye_span<const unsigned short> q, wye_span<const unsigned short> k, wye_span<const unsigned short> v,
                       wye_span<unsigned short> result, wye_span<float> state, Stretch stretch) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 750
  __shared__ AttentionTiles<128> tiles;
  attend<Half>(q.data, k.data, v.data, result.data, state.data, stretch, tiles);
#else
  __shared__ AttentionTiles<TensorHalf> tiles;
  attend<TensorHalf>(q.data, k.data, v.data, result.data, state.data, stretch, tiles);
#endif
}
