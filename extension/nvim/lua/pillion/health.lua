-- :checkhealth pillion reports what is missing and how to get it.
local M = {}

-- Called by `:checkhealth pillion`.
function M.check()
  local h = vim.health or require("health")
  local start = h.start or h.report_start
  local ok = h.ok or h.report_ok
  local warn = h.warn or h.report_warn
  local err = h.error or h.report_error
  local info = h.info or h.report_info
  local compat = require("pillion.compat")
  local config = require("pillion.config")
  local process = require("pillion.process")

  start("pillion: editor")
  if compat.has("0.10") then
    ok("Neovim " .. tostring(vim.version and vim.version() and ("%d.%d.%d"):format(vim.version().major, vim.version().minor, vim.version().patch)))
  elseif compat.has("0.7") then
    warn("Neovim older than 0.10 works, without colours in added lines and without a winbar before 0.8")
  else
    err("Neovim 0.7 is the oldest that works")
  end
  local problems = config.problems(config.was_set and config.options or {})
  if #problems == 0 then
    ok(config.was_set and "options are valid" or "defaults are used (setup() is optional)")
  end
  for _, p in ipairs(problems) do
    err(p)
  end
  if vim.o.autoread then
    ok("'autoread' is on: files that commands change are read again")
  else
    warn("'autoread' is off", { "set autoread, so that buffers without unsaved text follow what the agent's commands write" })
  end
  local parser = vim.treesitter and vim.treesitter.start and pcall(vim.treesitter.get_string_parser, "x", "markdown")
  info(parser and "treesitter colours for Markdown" or "no treesitter parser for Markdown: plain syntax colours in the chat")

  start("pillion: sidecar")
  local cmd, why = process.find()
  if not cmd then
    err(why, { "in a clone of Pillion: make build", 'or: require("pillion").setup({ cmd = "/path/to/pillion" })' })
  else
    ok("found " .. table.concat(cmd, " "))
    local full = vim.list_extend(vim.deepcopy(cmd), { "version", "--json" })
    local out = vim.fn.system(full)
    local good, v = pcall(vim.json.decode, out)
    if vim.v.shell_error ~= 0 or not good or type(v) ~= "table" or not v.version then
      err("it does not tell its version: " .. vim.trim(out):sub(1, 200), { "this is an old build, or another program; build it again" })
    else
      ok(("version %s, %s, %s"):format(v.version, v.platform or "?", v.go or "?"))
      local mismatch = process.mismatch(v.version)
      if mismatch then
        warn(mismatch)
      end
    end
  end
  if process.state == "ready" then
    ok("running, version " .. (process.info.agentInfo and process.info.agentInfo.version or "?"))
    local missing = {}
    for _, m in ipairs({ "_pillion/checkpoint/list", "_pillion/session/queue", "_pillion/change/turn", "_pillion/file/search", "_session/steering" }) do
      if not process.can(m) then
        missing[#missing + 1] = m
      end
    end
    if #missing > 0 then
      warn("this build of the sidecar lacks " .. table.concat(missing, ", "), { "build a newer one" })
    end
    if process.rpc and process.rpc.bad > 0 then
      warn(process.rpc.bad .. " lines on its output were no messages; see :Pillion log")
    end
  elseif process.error then
    err(process.error)
  else
    info("not running; the first prompt starts it")
  end
  for _, program in ipairs({ { "rg", "search is faster with ripgrep" }, { "git", "only used when it is there" } }) do
    if vim.fn.executable(program[1]) == 1 then
      ok(program[1] .. " found")
    else
      info(program[1] .. " not found: " .. program[2])
    end
  end
  info("log: " .. require("pillion.log").path())
end

return M
