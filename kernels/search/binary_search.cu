// Lower bound: the first place whose value is not less than the query.
extern "C" __global__ void binary_search(const int* table, int n, const int* query, int* place)
{
    int q = query[threadIdx.x];
    int low = 0;
    int high = n;
    #pragma unroll 1
    while (low < high) {
        int mid = (low + high) / 2;
        if (table[mid] < q)
            low = mid + 1;
        else
            high = mid;
    }
    place[threadIdx.x] = low;
}
