// Parallel merge: an element's place is its own index plus its rank in the other list.
// Elements of a go before equal elements of b.
extern "C" __global__ void merge_sorted(const int* a, const int* b, int* c)
{
    int t = threadIdx.x;
    bool first = t < 8;
    int own = t & 7;
    const int* other = first ? b : a;
    int v = first ? a[own] : b[own];
    int low = 0;
    int high = 8;
    #pragma unroll 1
    while (low < high) {
        int mid = (low + high) >> 1;
        int w = other[mid];
        bool before = first ? w < v : w <= v;
        if (before)
            low = mid + 1;
        else
            high = mid;
    }
    c[own + low] = v;
}
