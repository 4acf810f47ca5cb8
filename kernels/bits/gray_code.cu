// Gray code: neighbours differ in one bit. The way back is a prefix xor over the bits.
extern "C" __global__ void gray_code(const unsigned* x, unsigned* gray, unsigned* back)
{
    unsigned g = x[threadIdx.x];
    g ^= g >> 1;
    gray[threadIdx.x] = g;
    g ^= g >> 16;
    g ^= g >> 8;
    g ^= g >> 4;
    g ^= g >> 2;
    g ^= g >> 1;
    back[threadIdx.x] = g;
}
