// Population count twice: with the instruction, and with masks, shifts and one multiplication.
extern "C" __global__ void popcount(const unsigned* x, int* count, int* swar)
{
    unsigned v = x[threadIdx.x];
    count[threadIdx.x] = __popc(v);
    v -= (v >> 1) & 0x55555555u;
    v = (v & 0x33333333u) + ((v >> 2) & 0x33333333u);
    v = (v + (v >> 4)) & 0x0f0f0f0fu;
    swar[threadIdx.x] = v * 0x01010101u >> 24;
}
