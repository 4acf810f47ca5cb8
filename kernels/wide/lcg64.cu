// Knuth's 64-bit generator: multiply, add, hand out the upper half.
extern "C" __global__ void lcg64(unsigned long long* state, unsigned* number)
{
    unsigned long long s = state[threadIdx.x];
    #pragma unroll 1
    for (int i = 0; i < 3; ++i)
        s = s * 6364136223846793005ull + 1442695040888963407ull;
    state[threadIdx.x] = s;
    number[threadIdx.x] = s >> 32;
}
