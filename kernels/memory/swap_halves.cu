// The same memory seen as words and as half words: the two halves change places.
extern "C" __global__ void swap_halves(unsigned* x)
{
    ushort2* h = (ushort2*)x + threadIdx.x;
    ushort2 v = *h;
    *h = make_ushort2(v.y, v.x);
}
