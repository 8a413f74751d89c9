import torch

from lgdgcn.nn.batch_norm import MemberBatchNorm


def test_one_view_is_torchs_own():
    torch.manual_seed(0)
    mine, other = MemberBatchNorm(4).double(), torch.nn.BatchNorm1d(4).double()
    with torch.no_grad():
        for name in ("weight", "bias"):
            getattr(mine, name).copy_(torch.rand(4))
            getattr(other, name).copy_(getattr(mine, name))
    for _ in range(3):
        x = torch.randn(7, 4, dtype=torch.float64)
        torch.testing.assert_close(mine(x.unsqueeze(0))[0], other(x))
    torch.testing.assert_close(mine.mean, other.running_mean)
    torch.testing.assert_close(mine.variance, other.running_var)
    torch.testing.assert_close(mine.eval()(x.unsqueeze(0))[0], other.eval()(x))


def test_views_have_their_own_statistics_and_share_the_running_ones():
    x = torch.randn(3, 50, 2) * torch.tensor([1.0, 2.0, 3.0]).view(3, 1, 1)
    norm = MemberBatchNorm(2)
    out = norm(x)
    torch.testing.assert_close(out.std(1, unbiased=False), torch.ones(3, 2), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(norm.mean, 0.1 * x.mean(1).mean(0))
