// Bit reversal twice: __brev, and swapping ever larger neighbours.
extern "C" __global__ void bit_reverse(const unsigned* x, unsigned* fast, unsigned* slow)
{
    unsigned v = x[threadIdx.x];
    fast[threadIdx.x] = __brev(v);
    v = ((v >> 1) & 0x55555555u) | ((v & 0x55555555u) << 1);
    v = ((v >> 2) & 0x33333333u) | ((v & 0x33333333u) << 2);
    v = ((v >> 4) & 0x0f0f0f0fu) | ((v & 0x0f0f0f0fu) << 4);
    v = ((v >> 8) & 0x00ff00ffu) | ((v & 0x00ff00ffu) << 8);
    slow[threadIdx.x] = (v >> 16) | (v << 16);
}
