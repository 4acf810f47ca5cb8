// Pointer chasing: each load gives the address of the next one, until -1.
extern "C" __global__ void list_walk(const int* next, const int* value, const int* head, int* sum, int* length)
{
    int s = 0;
    int n = 0;
    #pragma unroll 1
    for (int i = head[threadIdx.x]; i >= 0; i = next[i]) {
        s += value[i];
        ++n;
    }
    sum[threadIdx.x] = s;
    length[threadIdx.x] = n;
}
