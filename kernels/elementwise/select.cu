// Both sides are loaded, then one is kept: a predicated select instead of a branch.
extern "C" __global__ void select(const int* mask, const int* a, const int* b, int* c)
{
    int i = threadIdx.x;
    int x = a[i];
    int y = b[i];
    c[i] = mask[i] ? x : y;
}
