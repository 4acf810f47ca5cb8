// Stream compaction: a lane's place is the number of keepers in the lanes before it.
extern "C" __global__ void compact(const int* x, int* kept, int* count)
{
    int lane = threadIdx.x;
    int v = x[lane];
    unsigned keep = __ballot_sync(0xffffffffu, v & 1);
    if (v & 1)
        kept[__popc(keep & ((1u << lane) - 1))] = v;
    if (lane == 0)
        *count = __popc(keep);
}
