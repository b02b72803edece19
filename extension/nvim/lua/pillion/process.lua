-- Finds and starts the sidecar, initializes the connection, and restarts it after a crash.
local compat = require("pillion.compat")
local config = require("pillion.config")
local log = require("pillion.log")
local rpc = require("pillion.rpc")

---@class pillion.Process
---@field rpc? pillion.Rpc
---@field state "stopped"|"starting"|"ready"|"failed"
---@field info? table result of initialize
---@field methods table<string, boolean> the _pillion methods it announced
---@field error? string why it does not run
local M = { state = "stopped", methods = {}, waiting = {}, crashes = {} }

-- The version of the `_pillion` additions that this plugin speaks.
M.version = 1
-- The release of this plugin; that of package.json (a test compares them).
M.release = "0.1.0"

local function executable(path)
  return vim.fn.executable(path) == 1
end

---@return string root of the plugin, without symbolic links
function M.root()
  local here = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h:h:h")
  return compat.uv.fs_realpath(here) or here
end

-- Returns the command of the sidecar: from the option, the program built in this repository or beside the plugin, or
-- from the PATH.
---@return string[]? cmd
---@return string? err
function M.find()
  local cmd = config.options.cmd
  if cmd then
    local list = type(cmd) == "string" and { vim.fn.expand(cmd) } or vim.deepcopy(cmd) --[[@as string[] ]]
    if not executable(list[1]) then
      return nil, ("option cmd: %s is not an executable file"):format(list[1])
    end
    return list
  end
  local root = M.root()
  for _, path in ipairs({ root .. "/bin/pillion", vim.fn.fnamemodify(root, ":h:h") .. "/bin/pillion" }) do
    if executable(path) then
      return { path }
    end
  end
  if executable("pillion") then
    return { vim.fn.exepath("pillion") }
  end
  return nil, "the program `pillion` was not found; build it (`make build` in Pillion's repository), put it on the PATH, or set the option cmd"
end

-- Reports whether the sidecar has a method.
---@param method string
---@return boolean
function M.can(method)
  return M.methods[method] == true
end

local function emit(event, arg)
  require("pillion.handlers").lifecycle[event](arg)
end

local function settle(err)
  local waiting = M.waiting
  M.waiting = {}
  for _, f in ipairs(waiting) do
    f(err)
  end
end

local function fail(err)
  M.state, M.error = "failed", err
  log.add("error", err)
  settle(err)
end

-- Stops a process that cannot be used, such as one whose initialize failed.
local function dismiss(r)
  r.dismissed = true
  M.rpc = nil
  r:stop()
end

local function initialize_params()
  return {
    protocolVersion = 1,
    clientInfo = { name = "pillion.nvim", title = "Neovim", version = M.release },
    clientCapabilities = {
      fs = { readTextFile = true, writeTextFile = false },
      terminal = false,
      session = { notices = compat.object(), compaction = compat.object() },
      elicitation = { form = compat.object() },
      _meta = {
        pillion = {
          version = M.version,
          buffers = true,
          hunks = true,
          trusted = config.options.trust,
          methods = require("pillion.handlers").announced,
        },
      },
    },
  }
end

-- Returns what to tell the person when the sidecar is of another release than this plugin. Before 1.0 a minor version may change
-- settings and methods, so a difference there matters; a patch does not.
---@param version string? as the sidecar names itself, for example 0.2.0-dev.g1a2b3c
---@return string?
function M.mismatch(version)
  local function release(v)
    local major, minor = tostring(v):match("^v?(%d+)%.(%d+)%.%d+")
    return major and tonumber(major) * 1e6 + tonumber(minor)
  end
  local theirs, ours = release(version), release(M.release)
  if not theirs or not ours or theirs == ours then
    return nil
  end
  local command, older = M.cmd and M.cmd[1] or "pillion", theirs < ours
  return ("%s is Pillion %s, %s than this plugin (%s), so some functions may be missing or fail; %s"):format(
    command,
    version,
    older and "older" or "newer",
    M.release,
    older and ("upgrade it with: " .. command .. " upgrade") or "update the plugin with your plugin manager"
  )
end

local function ended(r, code, stderr)
  if r.dismissed then
    return
  end
  local was = M.state
  log.add("info", "sidecar ended with code " .. code)
  local said = stderr[#stderr] and (": " .. stderr[#stderr]) or ""
  M.rpc, M.methods = nil, {}
  if M.stopping then
    M.stopping = false
    M.state = M.restarting and "starting" or was == "failed" and was or "stopped"
    return emit("exit", { code = code, wanted = true, said = said })
  end
  M.state = "stopped"
  if was == "starting" then
    return fail(("%s ended at once with code %d%s. Is it an old build? Build it again, or set the option cmd; :checkhealth pillion"):format(M.cmd[1], code, said))
  end
  emit("exit", { code = code, wanted = false, said = said })
  local now = compat.uv.now()
  M.crashes = vim.tbl_filter(function(t)
    return now - t < 120000
  end, M.crashes)
  table.insert(M.crashes, now)
  if #M.crashes > config.options.restart then
    M.state = "failed"
    M.error = ("the sidecar ended %d times in two minutes (code %d%s); see :Pillion log, then :Pillion restart"):format(#M.crashes, code, said)
    return log.tell("error", M.error)
  end
  local delay = math.min(250 * 2 ^ (#M.crashes - 1), 8000)
  log.tell("warn", ("the sidecar ended unexpectedly (code %d%s); restarting it"):format(code, said))
  M.state = "starting"
  vim.defer_fn(function()
    if M.state == "starting" and not M.rpc then
      M.state = "stopped"
      M.start(function() end)
    end
  end, delay)
end

-- Starts the sidecar if it does not run, and calls back when it is ready.
---@param callback fun(err?: string)
function M.start(callback)
  if M.state == "ready" then
    return callback()
  end
  table.insert(M.waiting, callback)
  if M.state == "starting" then
    return
  end
  M.state, M.error = "starting", nil
  local cmd, err = M.find()
  if not cmd then
    return fail(err)
  end
  M.cmd = cmd
  local full = vim.list_extend(vim.deepcopy(cmd), { "acp" })
  log.add("info", "starting " .. table.concat(full, " "))
  local r
  local started
  r, err = rpc.start(full, {
    cwd = vim.fn.getcwd(),
    env = config.options.env,
    handlers = require("pillion.handlers").table,
    on_exit = function(code, stderr)
      ended(started, code, stderr)
    end,
  })
  started = r
  if not r then
    return fail(cmd[1] .. " could not be started: " .. err)
  end
  M.rpc = r
  vim.defer_fn(function()
    if M.rpc == r and M.state == "starting" then
      dismiss(r)
      fail(cmd[1] .. " started but did not answer within 15 seconds; is it Pillion? See :Pillion log")
    end
  end, 15000)
  r:request("initialize", initialize_params(), function(e, result)
    if M.rpc ~= r then
      return
    end
    if e then
      if r.exited == nil and e.code ~= -32000 then
        dismiss(r)
        fail("initialize failed: " .. e.message)
      end
      return
    end
    local meta = type(result) == "table" and result._meta and result._meta.pillion
    if not meta or meta.version ~= M.version then
      dismiss(r)
      return fail(
        meta and ("%s speaks version %s of the editor protocol, this plugin version %d; update the older of the two (%s upgrade)"):format(cmd[1], tostring(meta.version), M.version, cmd[1])
          or (cmd[1] .. " answers, but it is not Pillion, or one that is too old for this plugin; build it again")
      )
    end
    M.info, M.state, M.methods = result, "ready", {}
    for _, m in ipairs(type(meta.methods) == "table" and meta.methods or {}) do
      M.methods[m] = true
    end
    if result._meta.steering and result._meta.steering.supported then
      M.methods["_session/steering"] = true
    end
    local version = result.agentInfo and result.agentInfo.version
    log.add("info", "connected to " .. (version or "?"))
    local mismatch = M.mismatch(version)
    if mismatch then
      log.tell("warn", mismatch)
    end
    require("pillion.buffers").enable(r)
    emit("ready")
    settle()
  end)
end

-- Sends a request; starts the sidecar first if it does not run.
---@param method string
---@param params any
---@param callback pillion.Callback
function M.request(method, params, callback)
  M.start(function(err)
    if err then
      return callback({ code = -32000, message = err })
    end
    M.rpc:request(method, params, callback)
  end)
end

---@param method string
---@param params any
function M.notify(method, params)
  if M.state == "ready" and M.rpc then
    M.rpc:notify(method, params)
  end
end

-- Stops the sidecar; with a time it waits until it has ended.
---@param wait? integer
function M.stop(wait)
  if M.rpc then
    M.stopping = true
    M.rpc:stop(wait)
  end
  if M.state ~= "failed" then
    M.state = "stopped"
  end
end

-- Restarts the sidecar; sessions are opened again.
function M.restart()
  M.crashes = {}
  local old = M.rpc
  if not old then
    M.state = "stopped"
    return M.start(function(err)
      if err then
        log.tell("error", err)
      end
    end)
  end
  M.stopping, M.restarting, M.state = true, true, "starting"
  old:stop()
  local function again()
    if not old.exited then
      return vim.defer_fn(again, 20)
    end
    M.restarting, M.state = false, "stopped"
    M.start(function(err)
      if err then
        log.tell("error", err)
      end
    end)
  end
  again()
end

return M
