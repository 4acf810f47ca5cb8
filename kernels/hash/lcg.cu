// Linear congruential generator: each thread writes four numbers of its own sequence.
extern "C" __global__ void lcg(const unsigned* seed, unsigned* numbers)
{
    unsigned x = seed[threadIdx.x];
    #pragma unroll 1
    for (int i = 0; i < 4; ++i) {
        x = x * 1664525u + 1013904223u;
        numbers[i * blockDim.x + threadIdx.x] = x >> 8;
    }
}
