// The active mask: all lanes outside the branch, only the takers inside it.
extern "C" __global__ void active_lanes(const int* x, unsigned* masks)
{
    int lane = threadIdx.x;
    unsigned m = __activemask();
    if (x[lane] < 0)
        m = __activemask();
    masks[lane] = m;
}
