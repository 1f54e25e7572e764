// Attention of bfloat16, with tensor cores if the architecture supports bfloat16.
#include "attention.cuh"
#include "numbers.cuh"
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#include "attention_plain.cuh"
#else
#include "attention_tensor.cuh"
#endif

extern "C" __global__ void __launch_bounds__(128, 4)
    wye_attention_bfloat16(wye_span<const unsigned short> q, wye_span<const unsigned short> k, wye_span<const unsigned short> v,
                           wye_span<unsigned short> result, wye_span<float> state, Stretch stretch) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  __shared__ AttentionTiles<128> tiles;
  attend<Bfloat16>(q.data, k.data, v.data, result.data, state.data, stretch, tiles);
#else
  __shared__ AttentionTiles<TensorBfloat16> tiles;
  attend<TensorBfloat16>(q.data, k.data, v.data, result.data, state.data, stretch, tiles);
#endif
}
