// Insertion sort in a per-thread array: its index is not known when compiling, so the array
// lives in local memory.
extern "C" __global__ void insertion_sort(int* x)
{
    int a[6];
    int* row = x + threadIdx.x * 6;
    #pragma unroll 1
    for (int i = 0; i < 6; ++i) {
        int v = row[i];
        int j = i;
        #pragma unroll 1
        while (j > 0 && a[j - 1] > v) {
            a[j] = a[j - 1];
            --j;
        }
        a[j] = v;
    }
    #pragma unroll 1
    for (int i = 0; i < 6; ++i)
        row[i] = a[i];
}
