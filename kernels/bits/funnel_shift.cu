// A funnel shift cuts 32 bits out of a 64-bit pair; with equal halves it is a rotation.
extern "C" __global__ void funnel_shift(const unsigned* low, const unsigned* high, const unsigned* shift, unsigned* left, unsigned* right, unsigned* rotated)
{
    int i = threadIdx.x;
    left[i] = __funnelshift_l(low[i], high[i], shift[i]);
    right[i] = __funnelshift_r(low[i], high[i], shift[i]);
    rotated[i] = __funnelshift_l(low[i], low[i], shift[i]);
}
