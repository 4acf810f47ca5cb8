// Morton order: spread 16 bits over the even places, twice, and weave them together.
__device__ unsigned spread(unsigned v)
{
    v = (v | (v << 8)) & 0x00ff00ffu;
    v = (v | (v << 4)) & 0x0f0f0f0fu;
    v = (v | (v << 2)) & 0x33333333u;
    return (v | (v << 1)) & 0x55555555u;
}

extern "C" __global__ void morton(const unsigned short* x, const unsigned short* y, unsigned* code)
{
    int i = threadIdx.x;
    code[i] = spread(x[i]) | spread(y[i]) << 1;
}
