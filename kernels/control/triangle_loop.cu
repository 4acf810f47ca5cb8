// Two nested loops with trip counts that differ from lane to lane.
extern "C" __global__ void triangle_loop(int* sum, int depth)
{
    int t = threadIdx.x;
    int s = 0;
    #pragma unroll 1
    for (int i = 0; i < depth; ++i) {
        #pragma unroll 1
        for (int j = 0; j < ((t + i) & 3); ++j)
            s += (i + 1) * (j + t) ^ j;
    }
    sum[t] = s;
}
