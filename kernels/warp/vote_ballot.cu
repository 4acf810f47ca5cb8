// Ballot: bit i of the result is lane i's answer; each warp votes for itself.
extern "C" __global__ void vote_ballot(const int* x, unsigned* votes)
{
    int t = threadIdx.x;
    unsigned b = __ballot_sync(0xffffffffu, x[t] > 0);
    if ((t & 31) == 0)
        votes[t >> 5] = b;
}
