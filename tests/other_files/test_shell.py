"""What is read of a shell script."""

from __future__ import annotations

from typing import Callable

import pytest

from migrator.files.document import document, encoded
from migrator.files.errors import Unreadable
from migrator.other_files.index import Setting, TextIndex, read
from tests.timing import grows_evenly

SCRIPT = """\
#!/bin/bash
export CUDA_VISIBLE_DEVICES=0,1  # both
NCCL_DEBUG="INFO" FOO=$BAR nohup python -u train.py --device cuda --backend='nccl' \\
  --gpus "$N" > "log $X" 2>&1 &
cat <<EOF > a.yaml
device: cuda
EOF
EMPTY=
"""


def of(text: str) -> TextIndex:
    return read("a.sh", "shell", text)


def plain(index: TextIndex, setting: Setting) -> tuple[str, str, str | None, str | None]:
    span = setting.value_span
    return setting.kind, setting.name, setting.value, index.text_of(span) if span else None


def test_settings_and_commands_have_their_places() -> None:
    index = of(SCRIPT)
    settings = [item for item in index.content.settings if not item.reads]
    assert [plain(index, item) for item in settings] == [
        ("variable", "CUDA_VISIBLE_DEVICES", "0,1", "0,1"),
        ("variable", "NCCL_DEBUG", "INFO", "INFO"),
        ("variable", "FOO", None, None),
        ("option", "-u", None, None),
        ("option", "--device", "cuda", "cuda"),
        ("option", "--backend", "nccl", "nccl"),
        ("option", "--gpus", None, None),
        ("variable", "EMPTY", "", ""),
    ]
    assert all(index.text_of(item.name_span) == item.name for item in settings)
    words = [word.text for word in index.content.commands[0].words]
    assert words == [*"nohup python -u train.py --device cuda --backend=nccl --gpus".split(), None]
    assert [item.name for item in index.content.settings if item.reads] == ["BAR", "N", "X"]
    assert [index.text_of(span) for span in index.content.comments] == ["#!/bin/bash", "# both"]


@pytest.mark.parametrize(
    ("line", "program", "name", "value"),
    [
        ("python -u train.py x", "python", "-u", None),
        ("CUDA=1 python3 -um train.py --device cuda", "train.py", "--device", "cuda"),
        ('python a.py --device "cuda:0"', "a.py", "--device", "cuda:0"),
        ('python a.py "--device=cuda"', "a.py", "--device", "cuda"),
        ("python a.py trainer.accelerator=gpu", "a.py", "trainer.accelerator", "gpu"),
        ("python a.py --n 2 MODEL.DEVICE cuda SOLVER.LR 0.1", "a.py", "MODEL.DEVICE", "cuda"),
        ("python a.py --opts MODEL.DEVICE 'cuda:0'", "a.py", "MODEL.DEVICE", "cuda:0"),
        (
            "python -m torch.distributed.launch --use_env --nproc_per_node=2 a.py --device cuda",
            "a.py",
            "--device",
            "cuda",
        ),
        ("torchrun --standalone -m pkg.train --device cuda", "pkg.train", "--device", "cuda"),
        ("accelerate launch --multi_gpu a.py --device cuda", "a.py", "--device", "cuda"),
        ("srun --gres=gpu:2 -l $ARGS python a.py --device cuda", "a.py", "--device", "cuda"),
        ("$PYTHON a.py --device cuda", "a.py", "--device", "cuda"),
        ("timeout 5 ./a.py --device cuda", "./a.py", "--device", "cuda"),
        ("bash -c 'python a.py --device cuda'", "a.py", "--device", "cuda"),
        ('ssh host "cd x && python a.py --device cuda"', "a.py", "--device", "cuda"),
        ('eval "python a.py --device cuda"', "a.py", "--device", "cuda"),
        ('CMD="python a.py --device cuda"\n$CMD', "a.py", "--device", "cuda"),
        ('ARGS=(--device cuda)\npython a.py "${ARGS[@]}"', "a.py", "--device", "cuda"),
        ('CMD=(mpirun -x NCCL_DEBUG=INFO)\n"${CMD[@]}" python a.py', "", "NCCL_DEBUG", "INFO"),
        ('CMD=(env A=1 python)\n"${CMD[@]}" a.py', "a.py", "A", "1"),
        ('ARGS="--device cuda --lr $LR"\npython a.py $ARGS', "a.py", "--device", "cuda"),
        ('D=cuda\npython a.py --device "$D"', "a.py", "--device", "cuda"),
        ("D=${1:-cuda}\npython a.py --device=$D", "a.py", "--device", "cuda"),
        ("for d in cuda cpu; do python a.py --device $d; done", "a.py", "--device", "cuda"),
        ("#SBATCH --gres=gpu:8 -N 1", "sbatch", "--gres", "gpu:8"),
        ("mpirun -x NCCL_DEBUG=INFO python a.py", "mpirun", "NCCL_DEBUG", "INFO"),
        ("srun --export=ALL,NCCL_DEBUG=INFO python a.py", "srun", "NCCL_DEBUG", "INFO"),
    ],
)
def test_a_setting_is_of_the_program_that_gets_it(
    line: str, program: str, name: str, value: str | None
) -> None:
    index = of(line + "\n")
    found = [item for item in index.content.settings if item.name == name and item.value == value]
    assert found
    owner = index.content.program_of(found[0])
    assert owner is not None
    assert owner.name == program
    span = found[0].value_span
    assert (index.text_of(span) if span else None) == value


@pytest.mark.parametrize("use", ["[[ $D == cuda* ]]", "cp x out_$D", "python b.py --name $D"])
def test_a_variable_with_another_use_is_only_reported(use: str) -> None:
    index = of(f'D=cuda\npython a.py --device "$D"\n{use}\n')
    spans = {
        item.value_span for item in index.content.settings if item.kind == "option" and item.value == "cuda"
    }
    assert spans == {None}
    index = of('D=cuda\npython a.py --device "$D"\necho "on $D"\n')
    assert any(item.kind == "option" and item.value_span for item in index.content.settings)


def test_what_a_variable_is_compared_with_is_what_it_may_be() -> None:
    text = (
        'python a.py --device "$D"\n'
        'if [ "$D" = "cuda" ]; then x; fi\n[[ -n $D && $D != cuda:0 ]]\n'
        "case $D in cuda|cpu) y ;; *) z ;; esac\n"
    )
    index = of(text)
    found = [plain(index, item)[2:] for item in index.content.settings if item.kind == "option"]
    values = ("cpu", "cuda", "cuda", "cuda:0", None)
    assert sorted(found, key=str) == [(each, each) for each in values]


def test_what_is_printed_is_no_option_and_other_languages_stay_apart() -> None:
    index = of("echo --device cuda\npython - <<X\nd = 'cuda'\nX\npython -c 'import a'\n")
    assert [item.name for item in index.content.settings] == ["-c"]
    assert [index.text_of(span) for span in index.content.bodies] == ["d = 'cuda'\n", "'import a'"]


def test_what_a_shell_completes_has_its_beginning() -> None:
    index = of("python a.py --device cuda:$RANK\n")
    (found,) = (item for item in index.content.settings if item.name == "--device")
    assert (found.value, found.begins, index.text_of(found.value_span or (0, 0))) == (None, "cuda:", "cuda:")


def test_a_makefile_has_variables_and_recipes() -> None:
    text = (
        "DEVICE ?= cuda\nexport NCCL_DEBUG = INFO  # why\ntrain: data\n"
        "\t@CUDA_VISIBLE_DEVICES=$$G $(PYTHON) train.py --device $(DEVICE) \\\n\t  --backend nccl\n"
    )
    index = read("Makefile", "makefile", text)
    found = [plain(index, item) for item in index.content.settings if item.value is not None]
    assert found == [
        ("variable", "DEVICE", "cuda", "cuda"),
        ("variable", "NCCL_DEBUG", "INFO", "INFO"),
        ("option", "--device", "cuda", "cuda"),
        ("option", "--backend", "nccl", "nccl"),
    ]
    assert [index.text_of(span) for span in index.content.comments] == ["# why"]
    assert [item.name for item in index.content.settings if item.reads] == ["G", "PYTHON", "DEVICE"]


def test_an_odd_line_spoils_only_itself() -> None:
    index = of("export A=1\nif [ ; then fi (\nexport B=2\n")
    assert {item.name for item in index.content.settings} >= {"A"}


_GB = "A=1  # 中文\r\nB=2\r\n".encode("gb18030")


@pytest.mark.parametrize("data", [_GB, b"\xef\xbb\xbfexport A=1\n", b"export A=\xe4\xb8\xad"])
def test_the_bytes_come_back(data: bytes) -> None:
    item = document(data, "a.sh")
    assert item.type == "shell"
    assert encoded(item, item.text) == data


def test_what_is_no_text_is_not_read() -> None:
    with pytest.raises(Unreadable, match="save it as UTF-8"):
        document(b"\xff\xfe\x00", "a.sh")
    with pytest.raises(Unreadable):
        document(b"A=\x00", "a.sh")


def test_a_shell_inside_leaves_the_outer_one_as_it_is() -> None:
    index = of("bash -c 'A=1 python a.py | tee log'\nexport B=2\nnvidia-smi | grep MiB\nC=3 python b.py\n")
    captured = [
        command.captured for command in index.content.commands if command.words[0].text == "nvidia-smi"
    ]
    assert captured == [True]
    assert {item.name for item in index.content.settings if item.kind == "variable"} == {"A", "B", "C"}
    of_command = [item.command is not None for item in index.content.settings if item.name in ("A", "C")]
    assert of_command == [True, True]


@pytest.mark.parametrize(
    ("size", "make"),
    [
        (8000, lambda size: "echo " + "$(" * size + "ls" + ")" * size),
        (20_000, lambda size: "a && \\\n" * size + "b"),
        (400_000, lambda size: "echo " + "x" * size),
    ],
    ids=["nested", "joined", "long word"],
)
def test_odd_shapes_take_no_time(size: int, make: Callable[[int], str]) -> None:
    assert grows_evenly(lambda text: of(text + "\n"), make, size)


def test_a_shell_between_double_quotes_has_escapes_of_its_own() -> None:
    text = (
        'srun bash -c "CUDA_VISIBLE_DEVICES=\\$SLURM_LOCALID python a.py \\\n --device \\"cuda\\" \\$X"\n'
        'CMD="python b.py --device cuda:\\$R"\n'
    )
    index = of(text)
    devices = [item for item in index.content.settings if item.name == "--device"]
    assert [plain(index, item)[2:] for item in devices] == [("cuda", "cuda"), (None, "cuda:")]
    (named,) = [item for item in index.content.settings if item.name == "CUDA_VISIBLE_DEVICES"]
    assert index.text_of(named.name_span) == named.name
    assert [program.name for program in index.content.commands[devices[0].command or 0].programs][
        -1
    ] == "a.py"
    assert not any(item.name == "SLURM_LOCALID" and not item.reads for item in index.content.settings)


@pytest.mark.parametrize(
    "text",
    [
        'ARGS="\n  --first 1\n  --device cuda\n"\npython a.py $ARGS\n',
        'ARGS="\\\n  --first 1 \\\n  --device cuda \\\n"\npython a.py $ARGS\n',
        "sbatch <<EOF\n#SBATCH -n 1\npython a.py --device cuda\nEOF\n",
        "cat x | ssh host bash -s <<'EOF'\npython a.py --device cuda\nEOF\n",
        'sbatch --wrap="python a.py --device cuda" -n 1\n',
        'tmux new-session -d -s a "python a.py --device cuda"\n',
        "parallel -j 2 'python a.py --device cuda' ::: 0 1\n",
        "screen -dmS a python a.py --device cuda\n",
    ],
)
def test_where_else_shell_stands(text: str) -> None:
    index = of(text)
    (device,) = [item for item in index.content.settings if item.name == "--device"]
    assert plain(index, device)[2:] == ("cuda", "cuda")
    program = index.content.program_of(device)
    assert program is not None
    assert program.name == "a.py"


@pytest.mark.parametrize(
    "text", ["bash run.sh <<EOF\ncuda\nEOF\n", "cat > a.sh <<EOF\npython --device cuda\nEOF\n"]
)
def test_a_here_document_of_another_program_is_no_shell(text: str) -> None:
    index = of(text)
    assert len(index.content.bodies) == 1
    assert not any(item.name == "--device" for item in index.content.settings)
