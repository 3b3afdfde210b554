//! Texts of `trace/`.

use super::Row;

/// Texts of this area.
pub const ROWS: &[Row] = &[
    (
        "trace.empty",
        "The file is empty. The logger was probably stopped before its buffer was written; `nvidia-smi --query-gpu=timestamp,index,memory.used,memory.free,memory.total --format=csv -l 1 -f gpu.csv` writes a readable log.",
        "文件为空。记录程序可能在缓冲区写入前就被终止了；可用 `nvidia-smi --query-gpu=timestamp,index,memory.used,memory.free,memory.total --format=csv -l 1 -f gpu.csv` 生成可读的日志。",
    ),
    (
        "trace.screen_capture",
        "This is a captured screen (`watch`), in which only changed cells are redrawn: it cannot be read back. Use `nvidia-smi --query-gpu=timestamp,index,memory.used,memory.free,memory.total --format=csv -l 1 -f gpu.csv`.",
        "这是屏幕捕获（`watch`），其中只重绘发生变化的单元格，无法还原。请改用 `nvidia-smi --query-gpu=timestamp,index,memory.used,memory.free,memory.total --format=csv -l 1 -f gpu.csv`。",
    ),
    (
        "trace.unknown",
        "This is not a format that we know. Readable are nvidia-smi (query CSV, table, -q, XML, dmon, pmon, compute-apps), gpustat, nvitop, nvtop, DCGM, Prometheus, W&B, rocm-smi, amd-smi, tegrastats, and lines that print GPU memory with a unit. `nvidia-smi --query-gpu=timestamp,index,memory.used,memory.free,memory.total --format=csv -l 1 -f gpu.csv` makes a readable log.",
        "无法识别此格式。可读取的格式有：nvidia-smi（query CSV、表格、-q、XML、dmon、pmon、compute-apps）、gpustat、nvitop、nvtop、DCGM、Prometheus、W&B、rocm-smi、amd-smi、tegrastats，以及带单位打印 GPU 显存的文本行。可用 `nvidia-smi --query-gpu=timestamp,index,memory.used,memory.free,memory.total --format=csv -l 1 -f gpu.csv` 生成可读的日志。",
    ),
    (
        "trace.no_memory_column",
        "This table has no column of memory in use; its columns are {columns}. Add memory.used: `nvidia-smi --query-gpu=timestamp,index,memory.used,memory.free,memory.total --format=csv -l 1 -f gpu.csv`.",
        "此表没有已用显存列；现有列为 {columns}。请加上 memory.used：`nvidia-smi --query-gpu=timestamp,index,memory.used,memory.free,memory.total --format=csv -l 1 -f gpu.csv`。",
    ),
    (
        "trace.dmon_without_memory",
        "This dmon log has no memory column (fb). Run `nvidia-smi dmon -s um -o DT`.",
        "此 dmon 日志没有显存列（fb）。请运行 `nvidia-smi dmon -s um -o DT`。",
    ),
    (
        "trace.pmon_without_memory",
        "This pmon log has no memory column (fb). Run `nvidia-smi pmon -s um -o DT`.",
        "此 pmon 日志没有显存列（fb）。请运行 `nvidia-smi pmon -s um -o DT`。",
    ),
    (
        "trace.dcgm_without_memory",
        "These DCGM figures hold no memory in use. Ask for the fields 250, 251 and 252: `dcgmi dmon -e 252,251,250`.",
        "这些 DCGM 数据中没有已用显存。请查询字段 250、251 和 252：`dcgmi dmon -e 252,251,250`。",
    ),
    (
        "trace.prometheus_without_memory",
        "This answer of Prometheus holds no metric of memory in use. Query DCGM_FI_DEV_FB_USED.",
        "此 Prometheus 响应中没有已用显存指标。请查询 DCGM_FI_DEV_FB_USED。",
    ),
    (
        "trace.only_bandwidth",
        "\"Memory utilization\" in this file is how busy the memory is, not how full. Log memory.used: `nvidia-smi --query-gpu=timestamp,index,memory.used,memory.free,memory.total --format=csv -l 1 -f gpu.csv`.",
        "此文件中的 “Memory utilization” 表示显存的繁忙程度，而不是占用量。请记录 memory.used：`nvidia-smi --query-gpu=timestamp,index,memory.used,memory.free,memory.total --format=csv -l 1 -f gpu.csv`。",
    ),
    (
        "trace.npu_smi",
        "This is npu-smi's table, whose memory figures are not read yet.",
        "这是 npu-smi 的表格，目前尚不能读取其中的显存数据。",
    ),
    (
        "trace.only_driver",
        "No readings: the driver's tool only said \"{text}\". Once `nvidia-smi` itself runs, log with `nvidia-smi --query-gpu=timestamp,index,memory.used,memory.free,memory.total --format=csv -l 1 -f gpu.csv`.",
        "没有读数：驱动工具只输出了“{text}”。待 `nvidia-smi` 能正常运行后，用 `nvidia-smi --query-gpu=timestamp,index,memory.used,memory.free,memory.total --format=csv -l 1 -f gpu.csv` 记录。",
    ),
    (
        "trace.no_values",
        "The memory fields of this file hold no value: this machine does not report them (unified memory), or the rows are cut. On unified memory log the system's memory, e.g. with `tegrastats` or `free -m -s 1`.",
        "此文件的显存字段都没有值：这台机器不报告显存（统一内存），或者各行不完整。统一内存的机器请记录系统内存，例如用 `tegrastats` 或 `free -m -s 1`。",
    ),
    (
        "trace.no_process_values",
        "The memory of processes has no value: under WDDM Windows manages it, and the driver cannot say. Log the card: `nvidia-smi --query-gpu=timestamp,index,memory.used,memory.free,memory.total --format=csv -l 1 -f gpu.csv`.",
        "进程显存没有值：在 WDDM 下由 Windows 管理显存，驱动无法给出。请记录整卡：`nvidia-smi --query-gpu=timestamp,index,memory.used,memory.free,memory.total --format=csv -l 1 -f gpu.csv`。",
    ),
    (
        "trace.row_sum",
        "Row left out: used + free differs from the other rows (two writers mixed?)",
        "已略去此行：已用 + 空闲与其他行不符（可能是两个写入者混在一起）",
    ),
    (
        "trace.row_card",
        "Row left out: its card name occurs hardly ever (two writers mixed?)",
        "已略去此行：其卡名几乎不出现（可能是两个写入者混在一起）",
    ),
    ("trace.row_skipped", "Line left out: it does not fit the columns", "已略去此行：与各列不符"),
    ("trace.cut_line", "The last line is cut and was left out", "最后一行不完整，已略去"),
    (
        "trace.cut_document",
        "A document is cut or broken; what could be read of it was kept",
        "有一份文档不完整或已损坏；已保留能读取的部分",
    ),
    (
        "trace.header_short",
        "The header names {names} columns, the rows have {fields}; columns were matched by their values",
        "表头有 {names} 个列名，而各行有 {fields} 个字段；已按数值匹配各列",
    ),
    (
        "trace.guessed",
        "No header: field {field} (after the time) was taken for memory in use",
        "没有表头：将（时间之后的）第 {field} 个字段视为已用显存",
    ),
    (
        "trace.guessed_open",
        "No header: field {field} (after the time) was taken for memory in use, but others could be it too; check",
        "没有表头：将（时间之后的）第 {field} 个字段视为已用显存，但也可能是其他字段，请核对",
    ),
    (
        "trace.by_place",
        "No column names the card: {cards} cards were told apart by their place in each round of rows. Add index to the query",
        "没有标明显卡的列：已按各行在每轮中的位置区分 {cards} 张卡。请在查询中加上 index",
    ),
    (
        "trace.rounds_differ",
        "Rounds of rows differ in size: a card came or went, and rows after it may stand for another card",
        "各轮的行数不同：有卡加入或离开，其后的行可能对应另一张卡",
    ),
    (
        "trace.card_lost",
        "GPU {gpu} is lost from here on: it fell off the bus; not an out-of-memory",
        "GPU {gpu} 从此处起丢失：它已从总线掉线，不是显存不足",
    ),
    ("trace.driver_message", "The driver cannot reach a card", "驱动无法访问某张卡"),
    ("trace.driver_said", "The driver's tool said: {text}", "驱动工具输出：{text}"),
    (
        "trace.unified",
        "This is the memory of the whole system, which processor and GPU share",
        "这是整个系统的内存，由处理器和 GPU 共用",
    ),
    (
        "trace.averages",
        "Readings are averages over an interval: short peaks do not show",
        "读数是一段时间内的平均值：短暂的峰值不会显示",
    ),
    (
        "trace.allocator_lines",
        "These are the framework's own figures; nvidia-smi shows more (context, other processes)",
        "这些是框架自身的数据；nvidia-smi 显示的值更大（含上下文和其他进程）",
    ),
    (
        "trace.nuls",
        "{count} NUL bytes were dropped (several writers, or a power cut)",
        "已丢弃 {count} 个 NUL 字节（多个写入者，或断电）",
    ),
    ("trace.utf16", "The file is UTF-16 (PowerShell)", "文件编码为 UTF-16（PowerShell）"),
    (
        "trace.legacy",
        "The file is no UTF-8; it was read as Windows-1252",
        "文件不是 UTF-8；已按 Windows-1252 读取",
    ),
    ("trace.no_time", "The file has no time: no rate can be given", "文件中没有时间：无法给出变化速率"),
    ("trace.why_insufficient", "{samples} readings: too few to tell", "只有 {samples} 个读数：不足以判断"),
    (
        "trace.why_growth",
        "Rose by {rise} in {span} in a straight line (R² {straight}), in many small steps: something is kept that should be given back, or a cache without a bound",
        "在 {span} 内呈直线上升 {rise}（R² {straight}），由许多小步组成：有内存未被归还，或缓存没有上限",
    ),
    (
        "trace.why_growth_untimed",
        "Rose by {rise} over {span} readings in a straight line (R² {straight}); without time no rate can be given",
        "在 {span} 个读数内呈直线上升 {rise}（R² {straight}）；没有时间，无法给出速率",
    ),
    (
        "trace.why_limit",
        "Rose by {rise} in the last {span} to {share} of the card, where the log ends: probably out of memory; the log cannot show whether the program crashed",
        "在最后 {span} 内上升 {rise}，达到整卡的 {share}，日志就此结束：很可能显存不足；日志无法表明程序是否崩溃",
    ),
    (
        "trace.why_floor",
        "The lowest points of the cycles rose by {rise} in {span} in a straight line (R² {straight}): each cycle leaves something behind",
        "各周期的最低点在 {span} 内呈直线上升 {rise}（R² {straight}）：每个周期都留下一部分内存",
    ),
    (
        "trace.why_floor_untimed",
        "The lowest points of the cycles rose by {rise} over {span} readings (R² {straight}): each cycle leaves something behind",
        "各周期的最低点在 {span} 个读数内上升 {rise}（R² {straight}）：每个周期都留下一部分内存",
    ),
    ("trace.why_idle", "Never above {high}: no job on this card", "从未超过 {high}：此卡上没有作业"),
    ("trace.why_flat", "Level at {level}, within {range}", "稳定在 {level}，波动不超过 {range}"),
    (
        "trace.why_pool",
        "Level at {level}, {share} of what programs can reach: taken in advance by a framework, which is normal for a pool",
        "稳定在 {level}，占程序可用显存的 {share}：由框架预先占用，对内存池而言属正常现象",
    ),
    (
        "trace.why_ramp",
        "Loaded from {low}, then level around {level}",
        "从 {low} 开始加载，之后稳定在 {level} 左右",
    ),
    (
        "trace.why_staircase",
        "Rises from {low} to {high} in a few steps and stays level between them: the highest demand so far grows",
        "从 {low} 分几步升到 {high}，步间保持平稳：历史最高需求在增长",
    ),
    (
        "trace.why_spike",
        "Up to {high} in {count} of {samples} readings, then gone",
        "在 {samples} 个读数中有 {count} 个达到 {high}，随后消失",
    ),
    (
        "trace.why_sawtooth",
        "{cycles} cycles between {low} and {high}",
        "在 {low} 与 {high} 之间有 {cycles} 个周期",
    ),
    (
        "trace.why_on_off",
        "Two levels by turns, {low} and {high}; {runs} runs",
        "在 {low} 与 {high} 两个水平之间交替；共 {runs} 段",
    ),
    ("trace.why_bursts", "Irregular peaks between {low} and {high}", "在 {low} 与 {high} 之间有不规则的峰值"),
    ("shape.insufficient", "too few readings", "读数过少"),
    ("shape.idle", "idle", "空闲"),
    ("shape.flat", "level", "平稳"),
    ("shape.pool", "memory pool taken in advance", "预先占用的内存池"),
    ("shape.ramp_plateau", "load, then level", "加载后平稳"),
    ("shape.staircase", "staircase", "阶梯上升"),
    ("shape.growth", "growth", "持续增长"),
    ("shape.spike", "spike", "瞬时尖峰"),
    ("shape.sawtooth", "regular cycles", "锯齿周期"),
    ("shape.on_off", "on and off", "反复占用与释放"),
    ("shape.bursts", "bursts", "突发峰值"),
    ("flag.near_full", "near full", "接近占满"),
    ("flag.released", "released at the end", "最后已释放"),
    ("flag.ends_at_peak", "log ends at the peak", "日志在峰值处结束"),
    ("flag.restarts", "restarts", "有重启"),
    ("flag.gaps", "gaps in the log", "日志有间断"),
    ("flag.idle_tail", "idle end", "末尾空闲"),
    ("flag.rising_floor", "rising floor", "底部抬升"),
    ("flag.lost", "card lost", "显卡丢失"),
    ("flag.imbalanced", "cards unequally loaded", "各卡负载不均"),
    ("flag.noisy", "wavering", "有波动"),
];
