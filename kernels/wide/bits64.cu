// 64-bit forms of the bit instructions.
extern "C" __global__ void bits64(const unsigned long long* x, int* ones, int* zeros, unsigned long long* reversed)
{
    int i = threadIdx.x;
    unsigned long long v = x[i];
    ones[i] = __popcll(v);
    zeros[i] = __clzll(v);
    reversed[i] = __brevll(v);
}
