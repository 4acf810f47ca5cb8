// Marsaglia's xorshift32 random numbers: three shifts and three xors a step.
extern "C" __global__ void xorshift(unsigned* state, int steps)
{
    unsigned x = state[threadIdx.x];
    #pragma unroll 1
    for (int i = 0; i < steps; ++i) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
    }
    state[threadIdx.x] = x;
}
