# Made by `cargo xtask release package` from the checksums of the archives.
class Qualitytrace < Formula
  desc "Trace-based testing for distributed systems"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license "Apache-2.0"

  depends_on :linux

  on_linux do
@TARGETS@
  end

  def install
    bin.install "qualitytrace"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/qualitytrace.bash" => "qualitytrace"
    zsh_completion.install "completions/_qualitytrace"
    fish_completion.install "completions/qualitytrace.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/qualitytrace --version")
  end
end
