// The final mix of MurmurHash3: every input bit changes about half the output bits.
extern "C" __global__ void murmur_mix(const unsigned* x, unsigned* h)
{
    unsigned v = x[threadIdx.x];
    v ^= v >> 16;
    v *= 0x85ebca6bu;
    v ^= v >> 13;
    v *= 0xc2b2ae35u;
    v ^= v >> 16;
    h[threadIdx.x] = v;
}
